// Parity's record: the first difference, and verdicts that can't be given.
#include "harness/parity.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

constexpr int64_t kAll = 3;  // tokens of a sequence
const ParityAnswer kBaseline = ParityTokens{{{1, 2, 3}, {4, 5, 6}}, {}};

Json compare(const ParityAnswer& answer, const ParityAnswer& baseline, int64_t generated = kAll) {
  return compare_parity("arm", answer, "base", baseline, generated);
}

TEST(CompareParity, CountsWhatAgrees) {
  const Json result = compare(kBaseline, kBaseline);
  EXPECT_EQ(result["passed"], true);
  EXPECT_EQ(result["compared_tokens"], 6);
  EXPECT_TRUE(result["first_difference"].is_null());
}

TEST(CompareParity, NamesTheFirstDifference) {
  const Json result = compare(ParityTokens{{{1, 2, 3}, {4, 9, 9}}, {}}, kBaseline);
  EXPECT_EQ(result["passed"], false);
  EXPECT_EQ(result["compared_tokens"], 5);
  EXPECT_EQ(result["first_difference"],
            (Json{{"sequence", 1}, {"position", 1}, {"expected", 5}, {"found", 9}}));
}

TEST(CompareParity, AShorterAnswerDiffersWhereItEnds) {
  const Json result = compare(ParityTokens{{{1, 2}, {4, 5, 6}}, {}}, kBaseline);
  EXPECT_EQ(result["passed"], false);
  EXPECT_EQ(result["first_difference"],
            (Json{{"sequence", 0}, {"position", 2}, {"expected", 3}, {"found", nullptr}}));
  EXPECT_EQ(compare(ParityTokens{}, kBaseline)["passed"], false);
}

TEST(CompareParity, HoldsACellToTheTokensThatItGenerates) {
  EXPECT_EQ(generated_tokens(0), 1) << "a prefill's";
  const ParityAnswer late = ParityTokens{{{1, 2, 9}, {4, 5, 9}}, {}};
  const Json two = compare(late, kBaseline, 2);
  EXPECT_EQ(two["passed"], true);
  EXPECT_EQ(two["generated_tokens"], 2);
  EXPECT_EQ(two["compared_tokens"], 4);
  const Json three = compare(late, kBaseline, 3);
  EXPECT_EQ(three["passed"], false);
  EXPECT_EQ(three["generated_tokens"], 3);
  EXPECT_EQ(three["first_difference"]["position"], 2);
  const ParityAnswer shorter = ParityTokens{{{1, 2}, {4}}, {}};
  EXPECT_EQ(compare(shorter, kBaseline, 1)["passed"], true);
  EXPECT_EQ(compare(shorter, kBaseline, 2)["first_difference"]["sequence"], 1);
}

TEST(CompareParity, ATieBehindTheCellsTokensIsNoneOfIts) {
  const Json steps = {
      {"others", {{7}, {9}, {8}}}, {"margins", {{1}, {0}, {1}}}, {"logit", {4, 4, 4}}};
  const ParityAnswer baseline = ParityTokens{{{1, 2, 3}}, {Json{{"eps", 0.001}, {"steps", steps}}}};
  const ParityAnswer other = ParityTokens{{{1, 9, 3}}, {}};
  const Json one = compare(other, baseline, 1);
  EXPECT_FALSE(one.contains("ties"));
  EXPECT_EQ(one["logit_stats"]["base"][0]["steps"],
            (Json{{"others", {{7}}}, {"margins", {{1}}}, {"logit", {4}}}));
  const Json two = compare(other, baseline, 2);
  EXPECT_EQ(two["ties"].size(), 1u);
  EXPECT_EQ(two["logit_stats"]["base"][0]["steps"]["logit"].size(), 2u);
}

// One that ends its text with 2 has nothing behind it; another one goes on.
TEST(CompareParity, AnIdThatEndsTheTextEndsTheComparison) {
  ParityTokens ending{{{1, 2}, {4, 5, 6}}, {}};
  EXPECT_EQ(compare(ending, kBaseline)["passed"], false) << "2 ends no text";
  ending.ends = {2};
  for (const auto& [answer, baseline] :
       {std::pair(ParityAnswer(ending), kBaseline), std::pair(kBaseline, ParityAnswer(ending))}) {
    const Json result = compare(answer, baseline);
    EXPECT_EQ(result["passed"], true);
    EXPECT_EQ(result["compared_tokens"], 5);
    ASSERT_EQ(result["ended"].size(), 1u);
    EXPECT_EQ(result["ended"][0], (Json{{"sequence", 0}, {"position", 1}, {"token", 2}}));
    EXPECT_FALSE(compare(answer, baseline, 2).contains("ended")) << "all were compared";
  }
  const Json both = compare(ending, ending);
  EXPECT_EQ(both["compared_tokens"], 5);
  EXPECT_EQ(both["ended"].size(), 1u);
  ending.rows[0] = {1, 3};
  const Json other = compare(ending, kBaseline);
  EXPECT_EQ(other["passed"], false) << "it ended at another token";
  EXPECT_EQ(other["first_difference"],
            (Json{{"sequence", 0}, {"position", 1}, {"expected", 2}, {"found", 3}}));
  ending.rows[0] = {1};
  EXPECT_EQ(compare(ending, kBaseline)["passed"], false) << "it broke off";
}

TEST(CompareParity, NothingComparedIsNoPass) {
  const Json result = compare(ParityTokens{}, ParityTokens{});
  EXPECT_TRUE(result["passed"].is_null());
  EXPECT_EQ(result["error"]["class"], "nothing_compared");
}

TEST(CompareParity, NoAnswerFailsAndNoBaselineSaysNothing) {
  const ParityAnswer none =
      std::unexpected(WorkerFailure{FailureKind::kCrash, "SIGSEGV", "it died"});
  const Json failed = compare(none, kBaseline);
  EXPECT_EQ(failed["passed"], false);
  EXPECT_EQ(failed["error"]["arm"], "arm");
  EXPECT_EQ(failed["error"]["class"], "SIGSEGV");
  const Json unsaid = compare(kBaseline, none);
  EXPECT_TRUE(unsaid["passed"].is_null());
  EXPECT_EQ(unsaid["error"]["arm"], "base");
}

TEST(CompareParity, AnArmThatIsNotAskedHasNoVerdict) {
  const Json result =
      unasked_parity("arm", "base", {FailureKind::kError, "not_asked", "it was lost"}, kAll);
  EXPECT_TRUE(result["passed"].is_null());
  EXPECT_EQ(result["baseline_arm"], "base");
  EXPECT_EQ(result["error"],
            (Json{{"arm", "arm"}, {"class", "not_asked"}, {"message", "it was lost"}}));
}

// A baseline whose second choice was ahead of 6 by nothing and of 9 by `margin`, in a type that
// rounds to `eps`.
ParityAnswer close_call(double eps, double margin) {
  const Json steps = {{"others", {{7, 9}, {6, 9}, {7, 9}}},
                      {"margins", {{1, 1}, {0, margin}, {1, 1}}},
                      {"logit", {4, 4, 4}}};
  return ParityTokens{{{1, 2, 3}}, {Json{{"eps", eps}, {"steps", steps}}}};
}

TEST(CompareParity, ATieWithinTheTypesRoundingEndsTheSequence) {
  constexpr double kFp16 = 0.000977;
  const ParityAnswer other = ParityTokens{{{1, 9, 8}}, {}};
  const Json tie = compare(other, close_call(kFp16, 0.05));
  EXPECT_EQ(tie["passed"], true);
  EXPECT_EQ(tie["compared_tokens"], 2);
  EXPECT_EQ(tie["ties"][0]["position"], 1);
  EXPECT_TRUE(tie["first_difference"].is_null());
  EXPECT_EQ(compare(other, close_call(kFp16, 0.07))["passed"], false) << "too far ahead";
  EXPECT_EQ(compare(other, close_call(1.19e-7, 1e-9))["passed"], false)
      << "fp32 is held to the token";
  const ParityAnswer third = ParityTokens{{{1, 8, 8}}, {}};
  EXPECT_EQ(compare(third, close_call(kFp16, 0.05))["passed"], false)
      << "not among those next to it";
  const ParityAnswer first_of_next = ParityTokens{{{1, 6, 8}}, {}};
  EXPECT_EQ(compare(first_of_next, close_call(kFp16, 0.05))["passed"], true);
  const ParityAnswer shorter = ParityTokens{{{1}}, {}};
  EXPECT_EQ(compare(shorter, close_call(kFp16, 0.05))["passed"], false);
}

TEST(CompareParity, AWorkersOddWordsAboutAChoiceMakeNoTie) {
  const ParityAnswer other = ParityTokens{{{1, 9, 8}}, {}};
  const auto passes = [&](const Json& steps) {
    const ParityAnswer baseline =
        ParityTokens{{{1, 2, 3}}, {Json{{"eps", 0.001}, {"steps", steps}}}};
    return compare(other, baseline)["passed"].get<bool>();
  };
  const Json good =
      Json::parse(R"({"others": [[], [9]], "margins": [[], [0.001]], "logit": [4, 4]})");
  EXPECT_TRUE(passes(good));
  for (const char* key : {"others", "margins", "logit"}) {
    for (const char* odd : {"null", "9", "{}", "[]", "[4]", "[[], []]", "[[], [\"9\"]]",
                            "[[], [null]]", "[[], {\"9\": 9}]"}) {
      Json steps = good;
      steps[key] = Json::parse(odd);
      EXPECT_FALSE(passes(steps)) << key << " " << odd;
    }
    Json without = good;
    without.erase(key);
    EXPECT_FALSE(passes(without)) << key;
  }
}

TEST(CompareParity, KeepsTheLogitStatisticsThatWorkersReport) {
  EXPECT_FALSE(compare(kBaseline, kBaseline).contains("logit_stats"));
  const ParityAnswer with{
      ParityTokens{{{1, 2, 3}, {4, 5, 6}}, {Json{{"mean", 0.5}}, Json{{"mean", 2}}}}};
  const Json result = compare(with, kBaseline);
  EXPECT_EQ(result["logit_stats"], (Json{{"arm", {{{"mean", 0.5}}, {{"mean", 2}}}}}));
  EXPECT_EQ(compare(with, with)["logit_stats"]["base"][1]["mean"], 2);
}

}  // namespace
}  // namespace assay
