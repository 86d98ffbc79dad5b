// Each answer to a claim on findings that give it, and beside them some
// that don't.
#include "gates/claim_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

using testing::HasSubstr;

SpeedClaim claimed_as(const std::string& text) {
  return parse_claim(text).value();
}

OutcomeCounts outcome(size_t stratum, const std::string& arm, int64_t failed = 0) {
  OutcomeCounts counts;
  counts.stratum = stratum;
  counts.arm = arm;
  counts.attempted = 30;
  counts.failed = failed;
  return counts;
}

Contrast contrast(std::optional<size_t> stratum, Verdict verdict, double ratio) {
  Contrast c;
  c.phase = Phase::kKvDecode;
  c.stratum = stratum;
  c.arm = "b";
  c.baseline = "a";
  c.verdict = verdict;
  c.ratio = ratio;
  c.ratio_interval = stats::Interval{ratio * 0.98, ratio * 1.02};
  return c;
}

Decision decision(size_t stratum, Decision::Kind kind, const std::string& arm) {
  Decision d;
  d.stratum = stratum;
  d.kind = kind;
  d.arm = arm;
  return d;
}

Rival rival(const std::string& arm) {
  return {arm, 1, std::nullopt, std::nullopt};
}

// Arms a (the baseline), b and c on two strata of kv_decode, b against a as said.
Findings findings_with(std::vector<Verdict> verdicts, Verdict combined = Verdict::kInconclusive) {
  Findings findings;
  findings.study.baseline = "a";
  findings.study.arms = {"a", "b", "c"};
  findings.strata = {{Phase::kKvDecode, "m", "short", 8, 1}, {Phase::kKvDecode, "m", "long", 8, 1}};
  for (size_t i = 0; i < 2; ++i) {
    for (const char* arm : {"a", "b", "c"}) findings.outcomes.push_back(outcome(i, arm));
    findings.contrasts.push_back(contrast(i, verdicts[i], 0.8));
  }
  findings.combined = {contrast(std::nullopt, combined, 0.8)};
  return findings;
}

ClaimAnswer answer(const std::string& claim, const Findings& findings) {
  return answer_claim(claimed_as(claim), StratumFindings(findings));
}

constexpr auto kFaster = Verdict::kFaster;
constexpr auto kOpen = Verdict::kInconclusive;
constexpr auto kSame = Verdict::kEquivalent;

TEST(ClaimAnswer, HoldsWhereEveryStratumSaysSo) {
  const Findings findings = findings_with({kFaster, kFaster});
  const ClaimAnswer said = answer("b faster than a in kv_decode", findings);
  EXPECT_EQ(said.verdict, GateVerdict::kPass);
  EXPECT_EQ(said.strata, (std::vector<size_t>{0, 1}));
  EXPECT_THAT(said.decided_by.front(),
              HasSubstr("kv_decode of m at short, 8 new tokens: faster, 0.8"));
}

TEST(ClaimAnswer, ReadsTheContrastFromEitherSide) {
  const Findings findings = findings_with({kFaster, kFaster});
  const ClaimAnswer swapped = answer("a slower than b in kv_decode", findings);
  EXPECT_EQ(swapped.verdict, GateVerdict::kPass);
  EXPECT_THAT(swapped.decided_by.front(), HasSubstr("slower, 1.25 [1.23, 1.28] of b's time"));
  EXPECT_EQ(answer("a faster than b in kv_decode", findings).verdict, GateVerdict::kFail);
}

TEST(ClaimAnswer, FailsWhereOneStratumSaysOtherwise) {
  EXPECT_EQ(
      answer("b faster than a in kv_decode", findings_with({kFaster, Verdict::kSlower})).verdict,
      GateVerdict::kFail);
  const ClaimAnswer same = answer("b faster than a in kv_decode", findings_with({kFaster, kSame}));
  EXPECT_EQ(same.verdict, GateVerdict::kFail) << "equivalence is tested, too";
  EXPECT_THAT(same.because, HasSubstr("1 of 2 strata: kv_decode of m at long"));
  EXPECT_EQ(
      answer("b faster than a in kv_decode at short", findings_with({kFaster, kSame})).verdict,
      GateVerdict::kPass)
      << "the claim is about the other one";
}

TEST(ClaimAnswer, WhyItIsOpenIsSaidOfOneStratumAsOfSeveral) {
  const ClaimAnswer one =
      answer("b faster than a in kv_decode at short", findings_with({kOpen, kSame}));
  EXPECT_EQ(one.verdict, GateVerdict::kNotDecided);
  EXPECT_EQ(one.because,
            "It is open: kv_decode of m at short, 8 new tokens: inconclusive, 0.800 [0.784, "
            "0.816] of a's time (not significant after Holm's correction).");
  // The same from the other side, whose interval lies above 1; one that holds 1 needs no Holm.
  EXPECT_THAT(
      answer("a faster than b in kv_decode at short", findings_with({kOpen, kSame})).because,
      HasSubstr("1.25 [1.23, 1.28] of b's time (not significant after Holm's correction)."));
  Findings wide = findings_with({kOpen, kSame});
  wide.contrasts[0].ratio_interval = stats::Interval{0.7, 1.1};
  EXPECT_THAT(answer("b faster than a in kv_decode at short", wide).because,
              HasSubstr("0.800 [0.700, 1.10] of a's time."));
  const ClaimAnswer several = answer("b faster than a in kv_decode", findings_with({kOpen, kOpen}));
  EXPECT_THAT(several.because, HasSubstr("It is open in 2 of 2 strata: "));
}

TEST(ClaimAnswer, EquivalenceIsAClaimOfItsOwn) {
  EXPECT_EQ(answer("b equivalent to a in kv_decode", findings_with({kSame, kSame})).verdict,
            GateVerdict::kPass);
  EXPECT_EQ(answer("a equivalent to b in kv_decode", findings_with({kSame, kOpen})).verdict,
            GateVerdict::kNotDecided);
  EXPECT_EQ(answer("b equivalent to a in kv_decode", findings_with({kSame, kFaster})).verdict,
            GateVerdict::kFail);
}

TEST(ClaimAnswer, InconclusiveStrataMayHoldTogether) {
  const ClaimAnswer whole =
      answer("b faster than a in kv_decode", findings_with({kFaster, kOpen}, kFaster));
  EXPECT_EQ(whole.verdict, GateVerdict::kPass);
  EXPECT_THAT(whole.because, HasSubstr("geometric mean over 2 strata"));
  EXPECT_EQ(answer("b faster than a in kv_decode", findings_with({kFaster, kOpen}, kOpen)).verdict,
            GateVerdict::kNotDecided);
  Findings lost = findings_with({kFaster, kOpen}, kFaster);
  lost.combined.front().lost_strata = 1;
  EXPECT_EQ(answer("b faster than a in kv_decode", lost).verdict, GateVerdict::kNotDecided);
  EXPECT_EQ(answer("b faster than a in kv_decode at long", findings_with({kFaster, kOpen}, kFaster))
                .verdict,
            GateVerdict::kNotDecided)
      << "the geometric mean is about more than the claim";
  Findings unpaired = findings_with({kFaster, kOpen}, kFaster);
  unpaired.contrasts.pop_back();
  unpaired.not_comparable = {{1, "b", {"unpaired: the arms answered different prompts"}}};
  EXPECT_EQ(answer("b faster than a in kv_decode", unpaired).verdict, GateVerdict::kNotDecided);
}

// Times of 0.9, 0.9 and 1.05 average to 0.95.
TEST(ClaimAnswer, AnAverageDoesNotHideAStratumThatMayBeTheOtherWayRound) {
  Findings findings = findings_with({kFaster, kOpen}, kFaster);
  findings.contrasts[1] = contrast(1, kOpen, 1.05);
  const ClaimAnswer open = answer("b faster than a in kv_decode", findings);
  EXPECT_EQ(open.verdict, GateVerdict::kNotDecided);
  EXPECT_THAT(open.because, HasSubstr("may be the other way round, by more than the margin of 3 %, "
                                      "in kv_decode of m at long"));
  EXPECT_EQ(answer("a slower than b in kv_decode", findings).verdict, GateVerdict::kNotDecided);
  findings.contrasts[1].ratio_interval = stats::Interval{0.95, 1.02};
  EXPECT_EQ(answer("b faster than a in kv_decode", findings).verdict, GateVerdict::kPass);
  EXPECT_EQ(answer("a slower than b in kv_decode", findings).verdict, GateVerdict::kPass);
  findings.contrasts[1].ratio_interval.reset();
  EXPECT_EQ(answer("b faster than a in kv_decode", findings).verdict, GateVerdict::kNotDecided)
      << "nothing bounds it";
}

TEST(ClaimAnswer, OneProcessIsTheReasonWhereItIs) {
  Findings findings = findings_with({kOpen, kOpen});
  EXPECT_THAT(answer("b faster than a in kv_decode", findings).because, HasSubstr("after Holm"));
  for (Contrast& one : findings.contrasts) one.one_process = true;
  EXPECT_THAT(answer("b faster than a in kv_decode", findings).because,
              HasSubstr("(an arm ran in one process)"));
}

TEST(ClaimAnswer, LostRowsOfTheClaimedArmFailIt) {
  Findings findings = findings_with({kFaster, kFaster});
  findings.contrasts.pop_back();
  findings.outcomes[4].failed = 5;  // b at long
  const ClaimAnswer said = answer("b faster than a in kv_decode", findings);
  EXPECT_EQ(said.verdict, GateVerdict::kFail);
  EXPECT_THAT(said.because, HasSubstr("b lost 5 of 30 rows"));
  EXPECT_EQ(answer("a slower than b in kv_decode", findings).verdict, GateVerdict::kNotDecided)
      << "the other arm lost them";
}

TEST(ClaimAnswer, OtherOutputFailsIt) {
  Findings findings = findings_with({kFaster, kFaster});
  Latency latency;
  latency.stratum = 0;
  latency.arm = "b";
  findings.latencies = {latency};
  EXPECT_EQ(answer("b faster than a in kv_decode", findings).verdict, GateVerdict::kPass);
  findings.latencies.front().parity_failed = true;
  const ClaimAnswer said = answer("b faster than a in kv_decode", findings);
  EXPECT_EQ(said.verdict, GateVerdict::kFail);
  EXPECT_THAT(said.because, HasSubstr("other output"));
}

TEST(ClaimAnswer, AVoidComparisonDecidesNothing) {
  Findings findings = findings_with({kFaster, kFaster});
  findings.decisions = {decision(0, Decision::Kind::kVoid, "")};
  findings.decisions.front().void_because = "the arms ran one after the other";
  const ClaimAnswer said = answer("b faster than a in kv_decode", findings);
  EXPECT_EQ(said.verdict, GateVerdict::kNotDecided);
  EXPECT_THAT(said.because, HasSubstr("one after the other"));
}

TEST(ClaimAnswer, WithoutRowsNothingIsDecided) {
  const ClaimAnswer said = answer("b faster than a in prefill", findings_with({kFaster, kFaster}));
  EXPECT_EQ(said.verdict, GateVerdict::kNotDecided);
  EXPECT_TRUE(said.strata.empty());
}

TEST(ClaimAnswer, TheFastestIsTheDecisions) {
  Findings findings = findings_with({kFaster, kFaster});
  const auto said = [&](Decision::Kind kind, const std::string& arm, std::vector<Rival> tied) {
    findings.decisions = {decision(0, kind, arm)};
    findings.decisions.front().tied = std::move(tied);
    return answer("b fastest in kv_decode at short", findings);
  };
  using Kind = Decision::Kind;
  EXPECT_EQ(said(Kind::kBest, "b", {}).verdict, GateVerdict::kPass);
  EXPECT_EQ(said(Kind::kBest, "c", {}).verdict, GateVerdict::kFail);
  EXPECT_EQ(said(Kind::kNoDifference, "b", {rival("c")}).verdict, GateVerdict::kFail);
  EXPECT_EQ(said(Kind::kNoDifference, "c", {rival("b")}).verdict, GateVerdict::kFail);
  EXPECT_EQ(said(Kind::kUndecided, "b", {rival("c")}).verdict, GateVerdict::kNotDecided);
  EXPECT_EQ(said(Kind::kAhead, "c", {rival("b")}).verdict, GateVerdict::kNotDecided);
  EXPECT_EQ(said(Kind::kAhead, "c", {rival("a")}).verdict, GateVerdict::kFail) << "b is beaten";
  EXPECT_EQ(said(Kind::kOnlyOne, "b", {}).verdict, GateVerdict::kNotDecided);
  EXPECT_EQ(said(Kind::kNone, "", {}).verdict, GateVerdict::kNotDecided);
  findings.decisions = {decision(0, Kind::kBest, "c")};
  findings.decisions.front().left_out = {{"b", "label-only"}};
  EXPECT_EQ(answer("b fastest in kv_decode at short", findings).verdict, GateVerdict::kNotDecided);
}

TEST(ClaimAnswer, TwoRivalsAreToldApartByTheDecision) {
  Findings findings = findings_with({kFaster, kFaster});
  findings.decisions = {decision(0, Decision::Kind::kBest, "b")};
  EXPECT_EQ(answer("b faster than c in kv_decode at short", findings).verdict, GateVerdict::kPass);
  EXPECT_EQ(answer("c faster than b in kv_decode at short", findings).verdict, GateVerdict::kFail);
  findings.decisions = {decision(0, Decision::Kind::kNoDifference, "b")};
  findings.decisions.front().tied = {rival("c")};
  EXPECT_EQ(answer("c equivalent to b in kv_decode at short", findings).verdict,
            GateVerdict::kPass);
  findings.decisions.front().kind = Decision::Kind::kUndecided;
  EXPECT_EQ(answer("b faster than c in kv_decode at short", findings).verdict,
            GateVerdict::kNotDecided);
}

TEST(ClaimAnswer, DecisionsClaimWhatTheyDecided) {
  Findings findings = findings_with({kFaster, kFaster});
  findings.decisions = {decision(0, Decision::Kind::kBest, "b"),
                        decision(1, Decision::Kind::kAhead, "b")};
  findings.decisions[1].ahead = {"b", "c"};
  findings.decisions[1].tied = {rival("c")};
  std::vector<std::string> texts;
  for (const SpeedClaim& claim : claims_of_decisions(findings)) {
    texts.push_back(claim_text(claim));
  }
  EXPECT_THAT(texts,
              testing::ElementsAre("b fastest in kv_decode of m at short batch 1 new_tokens 8",
                                   "b faster than a in kv_decode of m at long batch 1 new_tokens 8",
                                   "c faster than a in kv_decode of m at long batch 1 new_tokens "
                                   "8"));
  findings.decisions = {decision(0, Decision::Kind::kNoDifference, "b"),
                        decision(1, Decision::Kind::kUndecided, "b")};
  findings.decisions[0].tied = {rival("a")};
  const auto claims = claims_of_decisions(findings);
  ASSERT_EQ(claims.size(), 1u);
  EXPECT_EQ(claims[0].relation, ClaimRelation::kEquivalent);
  EXPECT_EQ(answer_claim(claims[0], StratumFindings(findings)).verdict, GateVerdict::kFail)
      << "this contrast says faster";
}

}  // namespace
}  // namespace assay
