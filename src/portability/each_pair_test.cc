// Each verdict, band, claim's state and control on made bundles that give it, and on bundles beside
// them, which differ in one number, that don't.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <set>

#include "portability/regimes_fixture.h"

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Verdicts = PortabilityVerdict;

constexpr const char* kClaimed = "fast faster than eager in prefill";

struct MadePair {
  double eager_ms = 10;
  double fast_ms = 8;
  int64_t lose_a = 0;
  int64_t lose_b = 0;
  double noise = 0.02;
  std::string lacks = {};  // the bundle without the arm
};

// The first bundle has 10 and 8 ms; the pair's times are the second one's.
std::vector<MadeRegime> regimes_of(const MadePair& pair, const std::string& axis = "") {
  std::vector<MadeRegime> both = {two_arm_regime("a", 10, 8),
                                  two_arm_regime("b", pair.eager_ms, pair.fast_ms)};
  both[0].arms[1].lose = pair.lose_a;
  both[1].arms[1].lose = pair.lose_b;
  both[1].noise = pair.noise;
  for (MadeRegime& made : both) {
    if (made.folder == pair.lacks) made.arms.pop_back();
    if (!axis.empty()) made.identity = {{axis, "of " + made.folder}};
  }
  return both;
}

TEST(EachPair, OfVerdicts) {
  struct Case {
    Verdicts given;
    MadePair gives;
    MadePair beside;
    Verdicts instead;
  };
  const Case cases[] = {
      {Verdicts::kSimilar, {.fast_ms = 8.1}, {.fast_ms = 8.8}, Verdicts::kShift},
      {Verdicts::kShift, {.eager_ms = 20, .fast_ms = 16}, {.fast_ms = 8}, Verdicts::kSimilar},
      {Verdicts::kShift, {.fast_ms = 9}, {.fast_ms = 10}, Verdicts::kUndecided},
      {Verdicts::kDirectionFlip, {.fast_ms = 11}, {.fast_ms = 10}, Verdicts::kUndecided},
      {Verdicts::kDirectionFlip, {.fast_ms = 11}, {.fast_ms = 9}, Verdicts::kShift},
      {Verdicts::kOutcomeFlip, {.lose_b = 30}, {.lose_b = 1}, Verdicts::kUndecided},
      {Verdicts::kOutcomeFlip, {.lose_a = 30}, {.lose_a = 30, .lose_b = 30}, Verdicts::kCrashBoth},
      {Verdicts::kCrashBoth,
       {.lose_a = 8, .lose_b = 40},
       {.lose_a = 1, .lose_b = 40},
       Verdicts::kUndecided},
      {Verdicts::kMissingA, {.lacks = "a"}, {}, Verdicts::kSimilar},
      {Verdicts::kMissingB, {.lacks = "b"}, {}, Verdicts::kSimilar},
      {Verdicts::kUndecided, {.noise = 0.5}, {.noise = 0.02}, Verdicts::kSimilar},
  };
  std::set<Verdicts> all;
  for (const Case& of : cases) {
    SCOPED_TRACE(portability_verdict_name(of.given));
    EXPECT_EQ(verdict_of(judged(regimes_of(of.gives)), "fast"), of.given);
    EXPECT_EQ(verdict_of(judged(regimes_of(of.beside)), "fast"), of.instead);
    all.insert(of.given);
  }
  EXPECT_EQ(all.size(), kPortabilityVerdicts.size()) << "each has a pair";
}

TEST(EachPair, RatesThatDifferAndDecideNothingAreSaidToDiffer) {
  const Portability of = judged(regimes_of({.lose_a = 1, .lose_b = 40}));
  EXPECT_THAT(of.verdicts[1].reason, HasSubstr("the rates differ, but neither lost none"));
  const Portability near = judged(regimes_of({.lose_a = 1, .lose_b = 2}));
  EXPECT_THAT(near.verdicts[1].reason, HasSubstr("which the intervals of the rates don't decide"));
}

// The time of the claimed arm where so much of its effect is left.
double ms_of_share(double share) {
  return 10 * std::pow(0.8, share);
}

struct BandCase {
  RobustnessBand band;
  double share;         // left at the other point
  double beside_share;  // and there another band is given
};
constexpr BandCase kBandCases[] = {
    {RobustnessBand::kRobust, 0.86, 0.74},    {RobustnessBand::kSensitive, 0.56, 0.44},
    {RobustnessBand::kSensitive, 0.74, 0.86}, {RobustnessBand::kFragile, 0.08, -0.08},
    {RobustnessBand::kFragile, 0.44, 0.56},   {RobustnessBand::kCatastrophic, -0.08, 0.08}};

JudgedClaim claimed_in(const std::vector<MadeRegime>& made) {
  PortabilityRequest request;
  request.claim = parse_claim(kClaimed).value();
  return judged(made, request).claims.at(0);
}

// What is left of the effect at an axis's other point, the rows that it lost, or that it isn't
// there.
struct OtherPoint {
  double share = 1;
  int64_t lose = 0;
  bool lacks = false;
};

template <typename RegimesAt>
RobustnessIndex index_at_point(const std::string& axis, const RegimesAt& regimes,
                               const OtherPoint& at) {
  return index_of(claimed_in(regimes(at)), axis);
}

// `regimes`: of an OtherPoint.
template <typename RegimesAt>
void expect_bands(const std::string& axis, const RegimesAt& regimes) {
  std::set<RobustnessBand> all = {RobustnessBand::kInvalid};  // expect_invalid()
  for (const BandCase& of : kBandCases) {
    SCOPED_TRACE(fmt::format("{} {} {}", axis, robustness_band_name(of.band), of.share));
    EXPECT_EQ(index_at_point(axis, regimes, {.share = of.share}).band, of.band);
    EXPECT_NE(index_at_point(axis, regimes, {.share = of.beside_share}).band, of.band);
    all.insert(of.band);
  }
  EXPECT_EQ(all.size(), kRobustnessBands.size()) << "each has a pair";
  EXPECT_EQ(index_at_point(axis, regimes, {.lose = 1}).band, RobustnessBand::kCatastrophic);
  EXPECT_EQ(index_at_point(axis, regimes, {.lose = 0}).band, RobustnessBand::kRobust);
}

template <typename RegimesAt>
void expect_invalid(const std::string& axis, const RegimesAt& regimes) {
  const RobustnessIndex invalid = index_at_point(axis, regimes, {.lacks = true});
  EXPECT_EQ(invalid.band, RobustnessBand::kInvalid) << axis;
  EXPECT_FALSE(invalid.reason.empty());
}

TEST(EachPair, OfBandsAlongAxesOfTheIdentity) {
  for (const auto& [member, axis] : {std::pair{"code_generator", "stack"},
                                     {"framework_build", "stack"},
                                     {"code_sha", "code"},
                                     {"device", "device"}}) {
    SCOPED_TRACE(member);
    const auto regimes = [&](const OtherPoint& at) {
      return regimes_of({.fast_ms = ms_of_share(at.share),
                         .lose_b = at.lose,
                         .noise = 0.005,
                         .lacks = at.lacks ? "b" : ""},
                        member);
    };
    expect_bands(axis, regimes);
    expect_invalid(axis, regimes);
    // The other axes have no point.
    const JudgedClaim claim = claimed_in(regimes_of({}, member));
    for (const char* other : {"stack", "code", "device", "cache"}) {
      if (std::string(other) == axis) continue;
      EXPECT_THAT(index_of(claim, other).reason, HasSubstr("nothing differs from a on")) << other;
    }
  }
}

TEST(EachPair, OfBandsAlongCaches) {
  const auto regimes = [](const OtherPoint& at) {
    MadeRegime made = two_arm_regime("a", 10, 8);
    made.noise = 0.005;
    if (!at.lacks) {
      made.arms.push_back({"eager-static", "eager", "static", 10});
      made.arms.push_back({"fast-static", "compiled", "static", ms_of_share(at.share), at.lose});
    }
    MadeRegime again = made;
    again.folder = "b";
    return std::vector{made, again};
  };
  expect_bands("cache", regimes);
  expect_invalid("cache", regimes);
}

TEST(EachPair, AClaimAboutCachesHasNoPointOverAnotherCache) {
  MadeRegime made{"a",
                  {{"eager", "eager", "dynamic", 10}, {"eager-static", "eager", "static", 8}},
                  Phase::kPrefill,
                  {{"code_generator", "a"}}};
  MadeRegime other = made;
  other.folder = "b";
  other.identity = {{"code_generator", "b"}};
  const Portability of = judged({made, other});
  ASSERT_EQ(of.claims.size(), 1u);
  EXPECT_EQ(index_of(of.claims[0], "stack").band, RobustnessBand::kRobust);
  // Over another cache both would be one arm, which is as fast as itself.
  EXPECT_EQ(index_of(of.claims[0], "cache").points.size(), 1u);
  EXPECT_EQ(index_of(of.claims[0], "cache").band, RobustnessBand::kInvalid);
}

TEST(EachPair, OfBandsAlongReruns) {
  expect_bands("process", [](const OtherPoint& at) {
    return regimes_of({.fast_ms = ms_of_share(at.share), .lose_b = at.lose, .noise = 0.005});
  });
}

TEST(EachPair, OfBandsAlongRoundsOfProcesses) {
  // One round of eight retains so much less that the share of the whole claim, whose mean it is a
  // part of, is the case's.
  const auto index = [](double share) {
    MadeRegime made = two_arm_regime("a", 10, 8);
    made.noise = 0.005;
    Bundle first = bundle_of(made, 1);
    const double of_round = 7 * share / (8 - share);
    for (Row& row : first.rows) {
      if (row.arm != "fast" || row.process != 3) continue;
      row.latency_ms = *row.latency_ms * std::pow(0.8, of_round - 1);
    }
    made.folder = "b";
    made.identity = {{"code_generator", "another"}};  // no rerun
    std::vector<Regime> regimes = {condense(first, {}).value(), regime_of(made, 2)};
    PortabilityRequest request;
    request.claim = parse_claim(kClaimed).value();
    return index_of(judge_portability(std::move(regimes), request).value().claims.at(0), "process");
  };
  for (const BandCase& of : kBandCases) {
    SCOPED_TRACE(fmt::format("{} {}", robustness_band_name(of.band), of.share));
    EXPECT_EQ(index(of.share).band, of.band) << *index(of.share).index;
    EXPECT_NE(index(of.beside_share).band, of.band);
  }
  // Of one process there is no other round.
  MadeRegime a = two_arm_regime("a", 10, 8);
  a.processes = 0;
  MadeRegime b = a;
  b.folder = "b";
  b.identity = {{"code_generator", "another"}};
  EXPECT_EQ(index_of(claimed_in({a, b}), "process").band, RobustnessBand::kInvalid);
}

TEST(EachPair, OfAnEffectThatIsNotProven) {
  // The claim isn't shown where it is made, so that nothing of it can be retained.
  std::vector<MadeRegime> made = regimes_of({}, "code_generator");
  made[0].arms[1].ms = 10;
  EXPECT_EQ(index_of(claimed_in(made), "stack").band, RobustnessBand::kInvalid);
  EXPECT_THAT(index_of(claimed_in(made), "stack").reason, HasSubstr("shows no difference"));
  made[0].arms[1].ms = 8;
  EXPECT_EQ(index_of(claimed_in(made), "stack").band, RobustnessBand::kRobust);
  made[0].arms[1].lose = 1;
  EXPECT_EQ(index_of(claimed_in(made), "stack").band, RobustnessBand::kInvalid);
  EXPECT_THAT(index_of(claimed_in(made), "stack").reason, HasSubstr("where the claim is made"));
}

TEST(EachPair, OfAClaimsStatesAndVerdicts) {
  struct Case {
    MadePair pair;
    ClaimState state;  // in the second bundle
    ClaimVerdict verdict;
  };
  const Case cases[] = {{{.fast_ms = 8}, ClaimState::kHolds, ClaimVerdict::kPortable},
                        {{.fast_ms = 10}, ClaimState::kUndecided, ClaimVerdict::kNotDecided},
                        {{.fast_ms = 12}, ClaimState::kTurned, ClaimVerdict::kNotPortable},
                        {{.lose_b = 1}, ClaimState::kLost, ClaimVerdict::kNotPortable},
                        {{.lacks = "b"}, ClaimState::kGone, ClaimVerdict::kNotDecided}};
  for (const Case& of : cases) {
    const JudgedClaim claim = claimed_in(regimes_of(of.pair, "code_generator"));
    EXPECT_EQ(claim_state_name(claim.regimes[1].state), claim_state_name(of.state));
    EXPECT_EQ(claim_verdict_name(claim.verdict), claim_verdict_name(of.verdict)) << claim.reason;
  }
  // The first pair again, as two runs of one regime.
  EXPECT_EQ(claimed_in(regimes_of({})).verdict, ClaimVerdict::kNotDecided);
}

TEST(EachPair, ClaimsOfAllRegimesAreOneFamily) {
  std::vector<MadeRegime> made = {two_arm_regime("a", 10, 8), two_arm_regime("b", 10, 9.9)};
  const double of_two = *claimed_in(made).regimes[0].p_holm;
  made.push_back(two_arm_regime("c", 10, 9.9));
  EXPECT_NEAR(*claimed_in(made).regimes[0].p_holm / of_two, 1.5, 1e-6)
      << "of three, the smallest p";
}

// The eager arm beside the compiled one takes so long in the second bundle, or loses its rows.
Attribution control_of(double eager_ms, double noise = 0.02, int64_t lose = 0) {
  MadeRegime a{"a",
               {{"eager", "eager", "dynamic", 10},
                {"eager-static", "eager", "static", 10},
                {"fast", "compiled", "static", 8}},
               Phase::kPrefill,
               {{"code_generator", "one"}}};
  MadeRegime b = a;
  b.folder = "b";
  b.identity = {{"code_generator", "two"}};
  b.arms[2].ms = 6;
  b.arms[1].ms = eager_ms;
  b.arms[1].lose = lose;
  b.noise = noise;
  return attribution_of(judged({a, b}), "fast");
}

TEST(EachPair, OfControls) {
  EXPECT_EQ(control_of(10).control, ControlState::kHeld);
  EXPECT_TRUE(control_of(10).about_compiler);
  EXPECT_EQ(control_of(12).control, ControlState::kMoved);
  EXPECT_EQ(control_of(10, 0.02, 40).control, ControlState::kMoved) << "it lost its rows";
  EXPECT_EQ(control_of(10, 0.02, 1).control, ControlState::kUnknown) << "it may have moved";
  EXPECT_FALSE(control_of(10, 0.02, 1).about_compiler);
  EXPECT_THAT(control_of(10, 0.02, 1).text, HasSubstr("It isn't shown whether eager-static"));
  const Portability without = judged(regimes_of({.fast_ms = 6}, "code_generator"));
  EXPECT_EQ(attribution_of(without, "fast").control, ControlState::kHeld);
  EXPECT_EQ(attribution_of(without, "eager").control, ControlState::kNone) << "it is one itself";
}

TEST(EachPair, OnlyAStackThatChangesIsEvidenceAboutACompiler) {
  for (const auto& [member, about] : {std::pair{"code_generator", true},
                                      {"framework_build", true},
                                      {"code_sha", false},
                                      {"device", false}}) {
    const Attribution of = attribution_of(judged(regimes_of({.fast_ms = 6}, member)), "fast");
    EXPECT_EQ(of.control, ControlState::kHeld);
    EXPECT_EQ(of.about_compiler, about) << member;
  }
}

TEST(EachPair, OfKindsOfAxes) {
  for (const char* axis :
       {"code_generator", "framework_build", "libraries", "environment_variables", "backend"}) {
    EXPECT_EQ(perturbation_of(axis), "stack") << axis;
  }
  for (const char* axis : {"device", "host", "threads"}) {
    EXPECT_EQ(perturbation_of(axis), "device") << axis;
  }
  EXPECT_EQ(perturbation_of("code_sha"), "code");
  EXPECT_EQ(perturbation_of("cache"), "cache");
  EXPECT_EQ(perturbation_of("model"), "model");
}

TEST(EachPair, OfWhatADirectionNeeds) {
  const auto direction = [](const std::function<void(Bundle&)>& change, int64_t repetitions = 40) {
    MadeRegime made = two_arm_regime("b", 10, 8);
    made.repetitions = repetitions;
    made.processes = repetitions < 8 ? 0 : 8;
    Bundle bundle = bundle_of(made, 2);
    change(bundle);
    std::vector<Regime> regimes = {regime_of(two_arm_regime("a", 10, 8), 1),
                                   condense(bundle, {}).value()};
    return judge_portability(std::move(regimes), {}).value();
  };
  const auto reason = [](const Portability& of) { return of.directions[1][1].reason; };
  const auto nothing = [](Bundle&) {};
  EXPECT_EQ(reason(direction(nothing)), "");
  EXPECT_EQ(direction(nothing).matrix[1].prefill_strata, 2);
  EXPECT_EQ(reason(direction(nothing, 4)), "fast has 4 warm ok rows, needs 5");
  EXPECT_EQ(reason(direction(nothing, 5)), "");
  const Portability failed = direction([](Bundle& bundle) {
    for (const Row& row : bundle.rows) {
      if (row.arm == "fast") bundle.parity[row.cell_id.str()] = {{"passed", false}};
    }
  });
  EXPECT_EQ(reason(failed), "fast failed parity");
  EXPECT_EQ(verdict_of(failed, "fast"), Verdicts::kUndecided);
  EXPECT_EQ(failed.claims[0].regimes[1].state, ClaimState::kGone);
  const Portability lost = direction([](Bundle& bundle) {
    for (Row& row : bundle.rows) {
      if (row.arm != "fast" || row.repetition != 39) continue;
      row.status = RowStatus::kCrash;
      row.error_class = "SIGSEGV";
      row.latency_ms = std::nullopt;
    }
  });
  EXPECT_EQ(reason(lost), "fast lost 1 of 40 rows");
  EXPECT_FALSE(lost.matrix[1].prefill_gain);
  EXPECT_EQ(lost.matrix[1].prefill_left_out, 2);
}

TEST(EachPair, OfWhatMakesAConditionTheSame) {
  const auto verdicts = [](const std::function<void(Row&)>& change) {
    Bundle bundle = bundle_of(two_arm_regime("b", 10, 8), 2);
    for (Row& row : bundle.rows) {
      if (row.arm == "fast") change(row);
    }
    std::vector<Regime> regimes = {regime_of(two_arm_regime("a", 10, 8), 1),
                                   condense(bundle, {}).value()};
    const Portability of = judge_portability(std::move(regimes), {}).value();
    std::set<Verdicts> found;
    for (const ConditionVerdict& each : of.verdicts) {
      if (of.conditions[each.condition].arm() != "eager") found.insert(each.verdict);
    }
    return found;
  };
  EXPECT_THAT(verdicts([](Row& row) { row.arm = "of another name"; }),
              ElementsAre(Verdicts::kSimilar));
  for (const auto& change : std::vector<std::function<void(Row&)>>{
           [](Row& row) { row.cache = "static"; }, [](Row& row) { row.compile_mode = "default"; },
           [](Row& row) { row.dynamic = "true"; }, [](Row& row) { row.quantization = "q4_0"; },
           [](Row& row) { row.new_tokens = 7; }, [](Row& row) { row.batch = 2; },
           [](Row& row) { row.model = "other"; },
           [](Row& row) { row.scenario = row.scenario.str() + "-x"; }}) {
    EXPECT_THAT(verdicts(change), ElementsAre(Verdicts::kMissingA, Verdicts::kMissingB));
  }
}

}  // namespace
}  // namespace assay
