// Each verdict, claim's state and control on made bundles that give it, and on bundles beside
// them, which differ in one number, that don't.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "portability/regimes_fixture.h"

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Verdicts = PortabilityVerdict;

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

TEST(EachPair, TheBaselineShiftsWithoutADirection) {
  EXPECT_EQ(verdict_of(judged(regimes_of({.eager_ms = 20, .fast_ms = 16})), "eager"),
            Verdicts::kShift);
  EXPECT_EQ(verdict_of(judged(regimes_of({.eager_ms = 10, .fast_ms = 16})), "eager"),
            Verdicts::kSimilar);
}

TEST(EachPair, RatesThatDifferAndDecideNothingAreSaidToDiffer) {
  const Portability of = judged(regimes_of({.lose_a = 1, .lose_b = 40}));
  EXPECT_THAT(of.verdicts[1].reason, HasSubstr("the rates differ, but neither lost none"));
  const Portability near = judged(regimes_of({.lose_a = 1, .lose_b = 2}));
  EXPECT_THAT(near.verdicts[1].reason, HasSubstr("which the intervals of the rates don't decide"));
}

TEST(EachPair, OfFailures) {
  struct Case {
    MadePair pair;
    size_t flips;  // of the arm's two conditions
    size_t claims;
  };
  // Without a named claim each flip is a failure, of outcomes too, and each claim that isn't
  // portable.
  for (const Case& of : {Case{{.fast_ms = 8}, 0, 0},
                         {{.eager_ms = 20, .fast_ms = 16}, 0, 0},  // shifts
                         {{.fast_ms = 12}, 2, 1},
                         {{.lose_b = 30}, 2, 1},
                         {{.lose_a = 30, .lose_b = 30}, 0, 0},  // nothing was claimed
                         {{.lose_b = 1}, 0, 1}}) {
    const Portability judgement = judged(regimes_of(of.pair, "code_generator"));
    const std::vector<std::string> failures = judgement.failures();
    const auto opening = [&](std::string_view word) {
      return static_cast<size_t>(std::ranges::count_if(
          failures, [&](const std::string& line) { return line.starts_with(word); }));
    };
    EXPECT_EQ(opening("direction_flip: fast on ") + opening("outcome_flip: fast on "), of.flips);
    EXPECT_EQ(opening("not_portable: fast faster than eager in prefill: "), of.claims);
    EXPECT_EQ(failures.size(), of.flips + of.claims);
  }
  // A claim that is named fails unless it is portable, and flips of others are none of its.
  const auto named = [](const MadePair& pair) {
    PortabilityRequest request;
    request.claim = parse_claim(kClaimed).value();
    return judged(regimes_of(pair, "code_generator"), request).failures().size();
  };
  EXPECT_EQ(named({.fast_ms = 8}), 0u);
  EXPECT_EQ(named({.fast_ms = 10}), 1u) << "it isn't decided";
  EXPECT_EQ(named({.fast_ms = 12}), 1u);
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
