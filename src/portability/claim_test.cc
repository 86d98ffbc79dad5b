// Claims: how they are named, where they hold, and along which axes they are looked at.
#include "portability/claim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "portability/regimes_fixture.h"

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

JudgedClaim judged_claim(const std::vector<MadeRegime>& made, const std::string& text) {
  PortabilityRequest request;
  request.claim = parse_claim(text).value();
  return judged(made, request).claims.at(0);
}

MadeRegime stack_regime(const std::string& folder, double eager_ms, double fast_ms) {
  MadeRegime made = two_arm_regime(folder, eager_ms, fast_ms);
  made.identity = {{"code_generator", folder}};
  return made;
}

constexpr const char* kFaster = "fast faster than eager in prefill";

TEST(PortableClaim, IsOfOneArmFasterOrSlowerThanAnotherInAPhase) {
  const auto said = [](const char* text) {
    const Status status = check_portable(parse_claim(text).value());
    return status ? "" : status.error().message;
  };
  EXPECT_EQ(said("a faster than b in prefill"), "");
  EXPECT_EQ(said("a slower than b in kv_decode of m at s batch 2 new_tokens 8"), "");
  EXPECT_THAT(said("a faster than b"), HasSubstr("which names no phase"));
  for (const char* other : {"a fastest in prefill", "a equivalent to b in prefill"}) {
    EXPECT_THAT(said(other), HasSubstr("found \"" + std::string(other) + "\", which `assay gate`"));
  }
}

TEST(PortableClaim, MayBeNarrowedToAPlace) {
  // The second bundle turns the claim round on one prompt length alone.
  Bundle a = bundle_of(stack_regime("a", 10, 8), 1);
  Bundle b = bundle_of(stack_regime("b", 10, 8), 2);
  for (Row& row : b.rows) {
    if (row.arm == "fast" && row.scenario == "single_long") *row.latency_ms *= 2;
  }
  const auto verdict = [&](const std::string& text) {
    std::vector<Regime> regimes = {condense(a, {}).value(), condense(b, {}).value()};
    PortabilityRequest request;
    request.claim = parse_claim(text).value();
    const auto of = judge_portability(std::move(regimes), request);
    EXPECT_TRUE(of) << (of ? "" : of.error().message);
    return of->claims[0].verdict;
  };
  EXPECT_EQ(verdict(std::string(kFaster) + " at single_micro"), ClaimVerdict::kPortable);
  EXPECT_EQ(verdict(std::string(kFaster) + " at single_long"), ClaimVerdict::kNotPortable);
  std::vector<Regime> regimes = {condense(a, {}).value(), condense(b, {}).value()};
  PortabilityRequest request;
  request.claim = parse_claim(std::string(kFaster) + " at single_mirco").value();
  EXPECT_THAT(judge_portability(std::move(regimes), request).error().message,
              HasSubstr("measured in prefill at single_mirco"));
}

TEST(PortableClaim, IsAboutArmsThatAreThere) {
  std::vector<Regime> regimes = {regime_of(two_arm_regime("a", 10, 8), 1),
                                 regime_of(two_arm_regime("b", 10, 8), 2)};
  PortabilityRequest request;
  request.claim = parse_claim("fsat faster than eager in prefill").value();
  const auto refused = judge_portability(std::move(regimes), request);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("did you mean \"fast\"?"));
}

TEST(PortableClaim, HoldsWhereTwoRegimesDifferOnOneAxis) {
  const JudgedClaim claim =
      judged_claim({stack_regime("a", 10, 8), stack_regime("b", 10, 7.9)}, kFaster);
  EXPECT_EQ(claim.verdict, ClaimVerdict::kPortable) << claim.reason;
  EXPECT_EQ(claim.regimes[1].state, ClaimState::kHolds);
  EXPECT_THAT(claim.regimes[1].axes, ElementsAre("code_generator"));
  EXPECT_EQ(index_of(claim, "stack").band, RobustnessBand::kRobust);
  EXPECT_EQ(index_of(claim, "all").points.size(), 2u);
  EXPECT_EQ(index_of(claim, "code").band, RobustnessBand::kInvalid);
  EXPECT_THAT(index_of(claim, "code").reason, HasSubstr("nothing differs"));
  // Reruns of one regime don't make it portable.
  const JudgedClaim reruns =
      judged_claim({two_arm_regime("a", 10, 8), two_arm_regime("b", 10, 8)}, kFaster);
  EXPECT_EQ(reruns.verdict, ClaimVerdict::kNotDecided);
  EXPECT_THAT(reruns.reason, HasSubstr("no two bundles differ on one axis alone"));
}

TEST(PortableClaim, ABundleThatDiffersInTwoKindsIsAPointOfNeither) {
  const MadeRegime a = stack_regime("a", 10, 8);
  MadeRegime both = stack_regime("both", 10, 8);
  both.identity.emplace_back("device", "H100");
  const JudgedClaim confounded = judged_claim({a, both}, kFaster);
  for (const char* axis : {"stack", "device"}) {
    EXPECT_EQ(index_of(confounded, axis).points.size(), 1u) << axis;
    EXPECT_EQ(index_of(confounded, axis).band, RobustnessBand::kInvalid) << axis;
  }
  EXPECT_EQ(index_of(confounded, "all").band, RobustnessBand::kRobust);
  // A third one that differs on the device alone is a point of it, whatever the second says.
  MadeRegime device = a;
  device.folder = "device";
  device.identity.emplace_back("device", "H100");
  both.arms[1].ms = 12;
  const JudgedClaim told = judged_claim({a, both, device}, kFaster);
  ASSERT_EQ(index_of(told, "device").points.size(), 2u);
  EXPECT_EQ(index_of(told, "device").points[1].name, "device");
  EXPECT_EQ(index_of(told, "device").band, RobustnessBand::kRobust);
  EXPECT_EQ(index_of(told, "stack").band, RobustnessBand::kInvalid);
  EXPECT_EQ(index_of(told, "all").band, RobustnessBand::kCatastrophic);
}

TEST(PortableClaim, AFlipALossAndAnUnshownOneAreTold) {
  const MadeRegime a = stack_regime("a", 10, 8);
  const JudgedClaim flipped = judged_claim({a, stack_regime("b", 10, 12)}, kFaster);
  EXPECT_EQ(flipped.verdict, ClaimVerdict::kNotPortable);
  EXPECT_EQ(flipped.regimes[1].state, ClaimState::kTurned);
  EXPECT_EQ(index_of(flipped, "stack").band, RobustnessBand::kCatastrophic);
  MadeRegime lost = stack_regime("b", 10, 8);
  lost.arms[1].lose = 3;
  const JudgedClaim crashed = judged_claim({a, lost}, kFaster);
  EXPECT_EQ(crashed.verdict, ClaimVerdict::kNotPortable);
  EXPECT_THAT(crashed.reason, HasSubstr("lost 6 of 80 rows of fast"));
  EXPECT_EQ(index_of(crashed, "stack").band, RobustnessBand::kCatastrophic);
  // So does the other arm of the claim, with it or alone.
  lost.arms[0].lose = 2;
  EXPECT_THAT(judged_claim({a, lost}, kFaster).reason,
              HasSubstr("lost 6 of 80 rows of fast and lost 4 of 80 rows of eager"));
  lost.arms[1].lose = 0;
  EXPECT_THAT(judged_claim({a, lost}, kFaster).reason, HasSubstr("b lost 4 of 80 rows of eager"));
  EXPECT_EQ(judged_claim({a, lost}, kFaster).regimes[1].state, ClaimState::kLost);
  const JudgedClaim equal = judged_claim({a, stack_regime("b", 10, 10)}, kFaster);
  EXPECT_EQ(equal.verdict, ClaimVerdict::kNotDecided);
  EXPECT_EQ(equal.regimes[1].state, ClaimState::kUndecided);
  const JudgedClaim wrong = judged_claim({a, a}, "fast slower than eager in prefill");
  EXPECT_EQ(wrong.verdict, ClaimVerdict::kNotDecided);
  EXPECT_EQ(index_of(wrong, "all").band, RobustnessBand::kInvalid);
  EXPECT_THAT(index_of(wrong, "all").reason, HasSubstr("shows the opposite"));
}

TEST(PortableClaim, AnArmThatDidNotEarnItsNameIsGone) {
  Bundle a = bundle_of(stack_regime("a", 10, 8), 1);
  Bundle b = bundle_of(stack_regime("b", 10, 8), 2);
  for (auto& [cell, evidence] : b.evidence) evidence.compiler_real = CompilerReal::kLabelOnly;
  std::vector<Regime> regimes = {condense(a, {}).value(), condense(b, {}).value()};
  PortabilityRequest request;
  request.claim = parse_claim(kFaster).value();
  const auto of = judge_portability(std::move(regimes), request);
  ASSERT_TRUE(of);
  EXPECT_EQ(of->claims[0].regimes[1].state, ClaimState::kGone);
  EXPECT_THAT(of->claims[0].regimes[1].reason, HasSubstr("label alone"));
  EXPECT_EQ(index_of(of->claims[0], "stack").band, RobustnessBand::kInvalid);
  EXPECT_EQ(of->failures().size(), 1u);
}

TEST(PortableClaim, CachesAndProcessesOfOneBundleAreAxes) {
  MadeRegime a = stack_regime("a", 10, 8);
  a.arms.push_back({"eager-static", "eager", "static", 10});
  a.arms.push_back({"fast-static", "compiled", "static", 9});
  MadeRegime b = a;
  b.folder = "b";
  const JudgedClaim claim = judged_claim({a, b}, kFaster);
  const RobustnessIndex& cache = index_of(claim, "cache");
  ASSERT_EQ(cache.points.size(), 2u);
  EXPECT_EQ(cache.points[1].name, "static cache");
  EXPECT_NEAR(*cache.index, std::log(0.9) / std::log(0.8), 0.05);
  EXPECT_EQ(cache.band, RobustnessBand::kFragile);
  const RobustnessIndex& process = index_of(claim, "process");
  EXPECT_EQ(process.points.size(), 10u) << "the reference, the rerun and eight processes";
  EXPECT_EQ(process.band, RobustnessBand::kUndecided) << "five rows of 2 % noise a process";
  EXPECT_EQ(process.best, RobustnessBand::kRobust);
}

TEST(PortableClaim, WithoutAClaimEveryArmsIsJudged) {
  const Portability of = judged({stack_regime("a", 10, 12), stack_regime("b", 10, 12)});
  ASSERT_EQ(of.claims.size(), 1u);
  EXPECT_EQ(claim_text(of.claims[0].claim.words), "fast slower than eager in prefill");
  EXPECT_EQ(of.claims[0].verdict, ClaimVerdict::kPortable) << of.claims[0].reason;
  EXPECT_TRUE(of.failures().empty());
}

}  // namespace
}  // namespace assay
