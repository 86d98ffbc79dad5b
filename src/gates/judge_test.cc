// The five gates together: claims, regimes, findings from files, bundles on a disk.
#include "gates/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "gates/honest_bundle.h"

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const char* const kClaim = "compiled-static faster than eager-dynamic in kv_decode";

SpeedClaim claim_in(const std::string& text) {
  return parse_claim(text).value();
}

BundleFacts facts_named(const std::string& name, const HonestStudy& study,
                        const std::optional<SpeedClaim>& claim = {}) {
  HonestBundle bundle(study);
  BundleFacts facts = bundle.facts(claim);
  facts.name = name;
  return facts;
}

// A first bundle, and one of `other`.
Judgement two(const HonestStudy& other, const std::string& axis = "",
              const std::optional<SpeedClaim>& claim = claim_in(kClaim)) {
  return judge_facts({facts_named("one", {}, claim), facts_named("two", other, claim)}, claim,
                     axis);
}

const HonestStudy kOtherCommit = {.seed = 2, .code_sha = std::string(40, 'f')};

TEST(RegimeGate, OneBundleAloneIsNotDecided) {
  const Judgement judgement = judge_facts({facts_named("one", {})}, claim_in(kClaim), "");
  EXPECT_EQ(judgement.gate_verdict(GateKind::kRegimes), GateVerdict::kNotDecided);
  EXPECT_EQ(judgement.claim_verdict(), GateVerdict::kPass);
  EXPECT_EQ(judgement.verdict(), GateVerdict::kNotDecided);
  for (const GateKind kind : kGateKinds) {
    if (kind != GateKind::kRegimes) {
      EXPECT_EQ(judgement.gate_verdict(kind), GateVerdict::kPass) << gate_name(kind);
    }
  }
}

TEST(RegimeGate, AClaimThatHoldsInTwoRegimesPasses) {
  const Judgement judgement = two(kOtherCommit);
  EXPECT_EQ(judgement.verdict(), GateVerdict::kPass);
  EXPECT_EQ(judgement.regimes.pairs.at(0).axis, "code_sha");
  ASSERT_EQ(judgement.regimes.claims.size(), 1u);
  EXPECT_THAT(judgement.regimes.claims[0].because,
              HasSubstr("It holds in one and two, which differ on code_sha alone."));
}

TEST(RegimeGate, AFlipFails) {
  HonestStudy flipped = kOtherCommit;
  flipped.compiled_share = 1.4;
  const Judgement judgement = two(flipped);
  EXPECT_EQ(judgement.gate_verdict(GateKind::kRegimes), GateVerdict::kFail);
  EXPECT_EQ(judgement.claim_verdict(), GateVerdict::kFail);
  EXPECT_THAT(judgement.regimes.claims[0].because, HasSubstr("It doesn't hold in two"));
  EXPECT_THAT(judgement.regimes.claims[0].holds,
              ElementsAre(GateVerdict::kPass, GateVerdict::kFail));
}

TEST(RegimeGate, AnOpenClaimIsNotDecided) {
  HonestStudy open = kOtherCommit;
  open.compiled_share = 1;
  open.noise = 0.5;
  const Judgement judgement = two(open);
  EXPECT_EQ(judgement.gate_verdict(GateKind::kRegimes), GateVerdict::kNotDecided);
  EXPECT_THAT(judgement.regimes.claims[0].because, HasSubstr("two: It is open"));
}

TEST(RegimeGate, NoAxisOrSeveralAxesAreNotDecided) {
  const Judgement same = two({.seed = 2});
  EXPECT_EQ(same.gate_verdict(GateKind::kRegimes), GateVerdict::kNotDecided);
  EXPECT_THAT(same.regimes.pairs.at(0).why_not, HasSubstr("no axis differs"));
  HonestStudy both = kOtherCommit;
  both.device = "Other CPU (family 6 model 2 stepping 1) x 2";
  const Judgement confounded = two(both);
  EXPECT_EQ(confounded.gate_verdict(GateKind::kRegimes), GateVerdict::kNotDecided);
  EXPECT_THAT(confounded.regimes.pairs.at(0).why_not,
              HasSubstr("2 axes differ (device, code_sha)"));
}

TEST(RegimeGate, OfPairsThatShowNothingTheOneOfFewestAxesIsNamed) {
  HonestStudy elsewhere = kOtherCommit;
  elsewhere.device = "Other CPU (family 6 model 2 stepping 1) x 2";
  HonestBundle third(elsewhere);
  third.made.raw().manifest["identity"]["code_generator"] = "another 1.0";
  BundleFacts other_stack = third.facts();
  other_stack.name = "other stack";
  const BundleFacts one = facts_named("one", {});
  const BundleFacts both = facts_named("both", elsewhere);
  const auto nearest = [](std::vector<BundleFacts> facts) {
    return judge_facts(facts, claim_in(kClaim), "cache").regimes.gate.checks.at(0).found;
  };
  // Two axes and three beside the first one; the other two differ on one, which isn't declared.
  EXPECT_THAT(nearest({one, both, other_stack}),
              HasSubstr("both and other stack: the declared axis is cache, and code_generator"));
  EXPECT_THAT(nearest({one, other_stack, both}),
              HasSubstr("other stack and both: the declared axis is cache, and code_generator"));
  EXPECT_THAT(nearest({one, other_stack}), HasSubstr("one and other stack: 3 axes differ"));
  // Two runs of one regime don't differ, and so aren't named as the nearest pair.
  BundleFacts again = one;
  again.name = "again";
  EXPECT_THAT(nearest({one, again, both}), HasSubstr("one and both: 2 axes differ"));
}

TEST(RegimeGate, OtherWeightsAreNoRegime) {
  HonestBundle first;
  HonestBundle second({.seed = 2});
  const auto weights = [](HonestBundle& bundle) -> Json& {
    return bundle.made.raw().manifest["completion"]["model_sha256"];
  };
  weights(first) = {{"gpt2-25m", "aa"}};
  weights(second) = {{"gpt2-25m", "bb"}};
  const std::vector<BundleFacts> facts = {first.facts(), second.facts()};
  for (const std::string axis : {"", "model"}) {
    const AxisPair pair = regime_pair(facts, 0, 1, axis);
    EXPECT_THAT(pair.axes, ElementsAre("model"));
    EXPECT_EQ(pair.axis, "");
    EXPECT_EQ(pair.why_not, "they measured other weights");
  }
}

TEST(RegimeGate, AnAxisThatNobodyStatedMayDifferAsWell) {
  HonestBundle stated(kOtherCommit);
  HonestBundle silent(kOtherCommit);
  silent.made.raw().manifest["identity"]["arms"]["compiled-static"]["unknown"] = {"device"};
  const std::vector<BundleFacts> facts = {facts_named("one", {}), stated.facts(), silent.facts()};
  EXPECT_EQ(regime_pair(facts, 0, 1, "").axis, "code_sha");
  for (const std::string axis : {"", "code_sha"}) {
    const AxisPair pair = regime_pair(facts, 0, 2, axis);
    EXPECT_EQ(pair.axis, "");
    EXPECT_EQ(pair.why_not,
              "code_sha differs, and not both state device, which may differ as well");
  }
}

TEST(RegimeGate, TheDeclaredAxisHasToBeTheOne) {
  EXPECT_EQ(two(kOtherCommit, "code_sha").verdict(), GateVerdict::kPass);
  const Judgement other = two(kOtherCommit, "device");
  EXPECT_EQ(other.gate_verdict(GateKind::kRegimes), GateVerdict::kNotDecided);
  EXPECT_THAT(other.regimes.pairs.at(0).why_not,
              HasSubstr("the declared axis is device, and code_sha differs"));
}

TEST(RegimeGate, PartsOfTheDevicesHostAreNoAxisAndItsSettingsAre) {
  HonestBundle first({.device = "CPU A"});
  HonestBundle second({.seed = 2, .device = "CPU B"});
  const auto host = [](HonestBundle& bundle) -> Json& {
    return bundle.made.raw().environment["host"];
  };
  host(first) = {{"cpu", {{"sockets", 1}, {"governor", "performance"}}}};
  host(second) = {{"cpu", {{"sockets", 2}, {"governor", "performance"}}}};
  std::vector<BundleFacts> facts;
  facts.push_back(first.facts());
  facts.push_back(second.facts());
  EXPECT_EQ(regime_pair(facts, 0, 1, "").axis, "device");
  host(second)["cpu"]["governor"] = "powersave";
  facts[1] = second.facts();
  const AxisPair pair = regime_pair(facts, 0, 1, "");
  EXPECT_EQ(pair.axis, "");
  EXPECT_THAT(pair.axes, ElementsAre("device", "host"));
}

TEST(RegimeGate, AnArmsOwnFrameworkIsAnAxisAlthoughOnlyItsWorkerReportsIt) {
  const auto facts_under = [](const char* transformers) {
    HonestBundle bundle;
    for (Row& row : bundle.made.raw().rows) {
      if (row.arm == "compiled-static") row.backend = "torch";
    }
    for (const Phase phase : {Phase::kPrefill, Phase::kKvDecode}) {
      Json& toolchain = bundle.made.reported(bundle.cell("compiled-static", phase))["toolchain"];
      toolchain["packages"] = {{"transformers", transformers}};
    }
    return bundle.facts();
  };
  const std::vector<BundleFacts> facts = {facts_under("4.50"), facts_under("5.0"),
                                          facts_under("5.0")};
  EXPECT_EQ(regime_pair(facts, 0, 1, "").axis, "framework_build");
  EXPECT_THAT(regime_pair(facts, 1, 2, "").why_not, HasSubstr("no axis differs"));
}

// Facts of an honest bundle of another commit, whose rows `change` makes others.
BundleFacts changed(const std::function<void(HonestBundle&)>& change,
                    const std::optional<SpeedClaim>& claim = claim_in(kClaim)) {
  HonestBundle bundle(kOtherCommit);
  change(bundle);
  BundleFacts facts = bundle.facts(claim);
  facts.name = "two";
  return facts;
}

TEST(RegimeGate, BundlesOfOtherModelsReproduceNothing) {
  const BundleFacts other = changed([](HonestBundle& bundle) {
    for (Row& row : bundle.made.raw().rows) row.model = "another";
  });
  const Judgement judgement = judge_facts({facts_named("one", {}), other}, claim_in(kClaim), "");
  EXPECT_EQ(judgement.claim_verdict(), GateVerdict::kPass);
  EXPECT_EQ(judgement.gate_verdict(GateKind::kRegimes), GateVerdict::kNotDecided);
  EXPECT_THAT(judgement.regimes.pairs.at(0).why_not,
              testing::MatchesRegex("they measured other models \\(.*; another\\)"));
}

TEST(RegimeGate, AClaimIsReproducedOnTheSameStrata) {
  const auto with_scenario = [](const char* from, const char* to) {
    return changed([&](HonestBundle& bundle) {
      for (Row& row : bundle.made.raw().rows) {
        if (row.scenario == from) row.scenario = to;
      }
    });
  };
  const auto regimes_beside = [](const BundleFacts& other, const char* claim) {
    return judge_facts({facts_named("one", {}), other}, claim_in(claim), "").regimes;
  };
  const JudgedRegimes partly = regimes_beside(with_scenario("single_long", "single_short"), kClaim);
  EXPECT_EQ(partly.claims.at(0).verdict, GateVerdict::kPass);
  EXPECT_THAT(partly.claims[0].because, HasSubstr("on the 1 stratum that both measured"));

  BundleFacts apart = with_scenario("single_long", "single_short");
  for (Stratum& stratum : apart.findings.strata) {
    if (stratum.phase == Phase::kKvDecode) stratum.new_tokens += 1;
  }
  const JudgedRegimes none = regimes_beside(apart, kClaim);
  EXPECT_EQ(none.pairs.at(0).axis, "code_sha") << "prefill is measured in both";
  EXPECT_EQ(none.claims.at(0).verdict, GateVerdict::kNotDecided);
  EXPECT_THAT(none.claims[0].because, HasSubstr("None of its strata was measured in both"));
}

// The fastest one of kv_decode at the short prompt. Returns its cell.
std::string add_third_arm(HonestBundle& bundle) {
  bundle.made.raw().manifest["study"]["arms"].push_back("third");
  return bundle.made.add({.arm = "third",
                          .phase = Phase::kKvDecode,
                          .prompt_tokens = 10,
                          .mean_ms = 5,
                          .noise = 0.01,
                          .warmup = 2,
                          .processes = 5});
}

TEST(RegimeGate, WhatDiffersHasToBeAboutTheClaimsArms) {
  // A third arm, which states another cache in the second bundle; the claim's arms are alike.
  const auto facts_with = [](const std::string& cache, const SpeedClaim& claim) {
    HonestBundle bundle;
    const std::string id = add_third_arm(bundle);
    for (Row& row : bundle.made.raw().rows) {
      if (row.cell_id == id) row.cache = cache;
    }
    return bundle.facts(claim);
  };
  const auto judged = [&](const SpeedClaim& claim) {
    return judge_facts({facts_with("dynamic", claim), facts_with("static", claim)}, claim, "")
        .regimes;
  };
  const JudgedRegimes others = judged(claim_in(kClaim));
  EXPECT_EQ(others.pairs.at(0).axis, "cache");
  EXPECT_EQ(others.claims.at(0).verdict, GateVerdict::kNotDecided);
  EXPECT_THAT(others.claims[0].because, HasSubstr("only other arms differ on cache"));
  const JudgedRegimes own =
      judged(claim_in("third faster than eager-dynamic in kv_decode at single_micro"));
  EXPECT_EQ(own.claims.at(0).verdict, GateVerdict::kPass);
}

TEST(RegimeGate, OneUndecidedClaimIsCountedInTheSingular) {
  HonestStudy open = kOtherCommit;
  open.compiled_share = 1;
  open.noise = 0.5;
  const Judgement judgement = two(open);
  EXPECT_THAT(judgement.regimes.gate.checks.at(1).found, HasSubstr("1 of 1 claim is open"));
}

TEST(RegimeGate, DecisionsAreReproducedOneByOne) {
  const Judgement held = two(kOtherCommit, "", std::nullopt);
  EXPECT_EQ(held.verdict(), GateVerdict::kPass);
  EXPECT_EQ(held.regimes.claims.size(), 4u) << "a decision a stratum";
  HonestStudy flipped = kOtherCommit;
  flipped.compiled_share = 1.4;
  const Judgement judgement = two(flipped, "", std::nullopt);
  EXPECT_EQ(judgement.gate_verdict(GateKind::kRegimes), GateVerdict::kFail);
  int failed = 0;
  for (const ReproducedClaim& claim : judgement.regimes.claims) {
    failed += claim.verdict == GateVerdict::kFail ? 1 : 0;
    EXPECT_EQ(claim.verdict == GateVerdict::kPass, claim.claim.phase == Phase::kPrefill)
        << claim_text(claim.claim);
  }
  EXPECT_EQ(failed, 4) << "of each of two strata of kv_decode both bundles' decisions";
}

TEST(Judge, AClaimBetweenTwoArmsBesideTheBaseline) {
  HonestBundle bundle;
  add_third_arm(bundle);
  const SpeedClaim claim =
      claim_in("third faster than compiled-static in kv_decode at single_micro");
  const BundleFacts facts = bundle.facts(claim);
  ASSERT_TRUE(facts.of_claim);
  EXPECT_EQ(facts.of_claim->study.baseline, "compiled-static");
  const Judgement judgement = judge_facts({facts}, claim, "");
  EXPECT_EQ(judgement.claim_verdict(), GateVerdict::kPass);
  EXPECT_THAT(judgement.bundles[0].claims[0].answer.because,
              HasSubstr("of compiled-static's time"));
}

TEST(Judge, EachDecisionHasTheVerdictsOfItsOwnCells) {
  HonestBundle bundle;
  bundle.made.evidence(bundle.cell("eager-dynamic", Phase::kKvDecode)).erase("worker");
  const Judgement judgement = judge_facts({bundle.facts()}, std::nullopt, "");
  ASSERT_EQ(judgement.bundles[0].claims.size(), 4u);
  for (const GatedClaim& claim : judgement.bundles[0].claims) {
    const bool hit = claim.claim.phase == Phase::kKvDecode && claim.claim.scenario == "single_long";
    EXPECT_EQ(claim.gates[1], hit ? GateVerdict::kFail : GateVerdict::kPass)
        << claim_text(claim.claim);
    EXPECT_EQ(claim.gates[0], GateVerdict::kPass);
  }
}

TEST(Judge, TheJsonSaysTheSame) {
  const Judgement judgement = two(kOtherCommit);
  const Json json = judgement_to_json(judgement);
  EXPECT_EQ(json["schema_version"], kJudgementSchemaVersion);
  EXPECT_EQ(json["verdict"], "pass");
  EXPECT_EQ(json["claim"]["arm"], "compiled-static");
  EXPECT_EQ(json["claim_holds"], "pass");
  EXPECT_EQ(json["gates"]["cross_regime"], "pass");
  EXPECT_EQ(json["bundles"].size(), 2u);
  EXPECT_EQ(json["bundles"][0]["gates"].size(), 4u);
  EXPECT_EQ(json["bundles"][0]["claims"][0]["gates"]["artifact_evidence"], "pass");
  EXPECT_EQ(json["cross_regime"]["pairs"][0]["axis"], "code_sha");
  EXPECT_EQ(json["cross_regime"]["claims"][0]["holds"], Json::array({"pass", "pass"}));
}

TEST(BundleFindings, AreTakenFromTheFileOnlyWhereTheyAreOfTheRows) {
  HonestBundle made;
  Bundle bundle = made.made.build();
  const Samples samples = group_rows(bundle, {"eager-dynamic", "compiled-static"}).value();
  const Findings right = findings_of_bundle(bundle, samples, nullptr)->findings;
  EXPECT_EQ(disagreement(right, bundle, samples), "");
  const auto said = [&](const auto& change) {
    Findings findings = right;
    change(findings);
    return disagreement(findings, bundle, samples);
  };
  EXPECT_THAT(said([](Findings& f) { f.study.rows += 1; }), HasSubstr("another study"));
  EXPECT_THAT(said([](Findings& f) { f.identity.front().second = "x"; }),
              HasSubstr("another identity"));
  EXPECT_THAT(said([](Findings& f) { f.strata.front().batch = 2; }), HasSubstr("other strata"));
  EXPECT_THAT(said([](Findings& f) { f.latencies.pop_back(); }), HasSubstr("other cells"));
  EXPECT_THAT(said([](Findings& f) { *f.latencies[0].mean *= 1.001; }), HasSubstr("its rows"));
  EXPECT_THAT(said([](Findings& f) { f.latencies[0].n += 1; }), HasSubstr("its rows"));
  EXPECT_THAT(said([](Findings& f) { f.outcomes.back().failed = 1; }), HasSubstr("its rows"));
}

}  // namespace
}  // namespace assay
