// Each verdict on a bundle on which it is given, and on one beside it on which it isn't.
#include "portability/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "portability/regimes_fixture.h"
#include "stats/hypotheses/equivalence.h"
#include "stats/hypotheses/multiple.h"
#include "stats/hypotheses/tests.h"
#include "stats/samples/summary.h"

namespace assay {
namespace {

using testing::HasSubstr;

PortabilityVerdict beside(const MadeRegime& a, const MadeRegime& b) {
  return verdict_of(judged({a, b}), "fast");
}

TEST(PortabilityVerdict, SimilarLatencyIsAProvenEquivalence) {
  const MadeRegime a = two_arm_regime("a", 10, 8);
  EXPECT_EQ(beside(a, two_arm_regime("b", 10, 8)), PortabilityVerdict::kSimilar);
  EXPECT_NE(beside(a, two_arm_regime("b", 10, 8.5)), PortabilityVerdict::kSimilar);
  MadeRegime noisy = two_arm_regime("b", 10, 8);
  noisy.noise = 0.5;
  EXPECT_EQ(beside(a, noisy), PortabilityVerdict::kUndecided)
      << "the same means, which such rows don't show";
}

TEST(PortabilityVerdict, FewProcessesHaveARangeWhichAVerdictNeeds) {
  for (const int64_t processes : {2, 3, 4}) {
    const auto between = [&](double ms) {
      std::vector<MadeRegime> both = {two_arm_regime("a", 10, 8), two_arm_regime("b", 10, ms)};
      for (MadeRegime& made : both) {
        made.processes = processes;
        made.noise = 0.0005;
      }
      return judged(both);
    };
    const bool few = processes < 4;
    const Portability of = between(4);
    for (const ConditionVerdict& verdict : of.verdicts) {
      ASSERT_TRUE(verdict.shown);
      EXPECT_EQ(verdict.shown->process_range.has_value(), few);
      EXPECT_EQ(verdict.shown->interval.has_value(), !few);
      if (!few) continue;
      EXPECT_TRUE(verdict.shown->process_range->contains(verdict.shown->ratio));
    }
    for (const ClaimInRegime& in : of.claims.at(0).regimes) {
      EXPECT_EQ(in.shown->interval.has_value(), !few);
      EXPECT_EQ(in.shown->process_range.has_value(), few);
    }
  }
  // Sure by the test, and by less than the margin of 5 %.
  const CellMean a{10, 5, 15, stats::StandardError{1e-4, 2}, 3, {9.99, 10.01}};
  const CellMean b{10.4, 5, 15, stats::StandardError{1e-4, 2}, 3, {10.39, 10.41}};
  const SpreadRatio ratio = shown(estimate_between(a, b));
  const auto verdict = [&](const AdjustedTests& p, double margin) {
    return verdict_of({ratio.ratio, ratio.interval, true, ratio.process_range}, p, 0.05, margin);
  };
  EXPECT_EQ(verdict({0.001, {}}, 0.05), Verdict::kInconclusive);
  EXPECT_EQ(verdict({0.001, {}}, 0.03), Verdict::kSlower);
  EXPECT_EQ(verdict({0.001, 0.001}, 0.05), Verdict::kEquivalent);
}

TEST(PortabilityVerdict, ShiftIsAnotherMagnitudeInTheSameDirection) {
  const MadeRegime a = two_arm_regime("a", 10, 8);
  EXPECT_EQ(beside(a, two_arm_regime("b", 20, 16)), PortabilityVerdict::kShift);
  // Slower by as much, and the direction isn't known there.
  EXPECT_EQ(beside(a, two_arm_regime("b", 20, 20)), PortabilityVerdict::kUndecided);
  // Nor is it where neither bundle shows one.
  MadeRegime open_a = two_arm_regime("a", 10, 10);
  MadeRegime open_b = two_arm_regime("b", 20, 20);
  open_a.noise = open_b.noise = 0.3;
  const Portability open = judged({open_a, open_b});
  EXPECT_EQ(verdict_of(open, "eager"), PortabilityVerdict::kShift) << "the baseline has none";
  EXPECT_EQ(verdict_of(open, "fast"), PortabilityVerdict::kUndecided);
  EXPECT_THAT(open.verdicts[1].reason,
              HasSubstr("the means differ, and against the baseline it is inconclusive in a, "
                        "inconclusive in b"));
}

TEST(PortabilityVerdict, TheRatioIsOfTheOtherBundlesMeanToTheFirstOnes) {
  const Portability of =
      judged({two_arm_regime("a", 10, 8), two_arm_regime("b", 20, 12), two_arm_regime("c", 10, 4)});
  for (const ConditionVerdict& verdict : of.verdicts) {
    const bool eager = of.conditions[verdict.condition].arm() == "eager";
    const double ratio = verdict.b == 1 ? (eager ? 2 : 1.5) : (eager ? 1 : 0.5);
    EXPECT_NEAR(std::exp(verdict.ratio->log_ratio), ratio, 0.02 * ratio);
    EXPECT_EQ(verdict.verdict,
              ratio == 1 ? PortabilityVerdict::kSimilar : PortabilityVerdict::kShift);
  }
}

TEST(PortabilityVerdict, ADirectionFlipNeedsBothDirections) {
  const MadeRegime a = two_arm_regime("a", 10, 8);
  EXPECT_EQ(beside(a, two_arm_regime("b", 10, 13)), PortabilityVerdict::kDirectionFlip);
  MadeRegime noisy = two_arm_regime("b", 10, 13);
  noisy.noise = 1.2;
  EXPECT_NE(beside(a, noisy), PortabilityVerdict::kDirectionFlip);
}

TEST(PortabilityVerdict, DirectionsOfAllRegimesAreOneFamily) {
  const Portability of = judged({two_arm_regime("a", 10, 9.9), two_arm_regime("b", 10, 10.1)});
  std::vector<double> p;
  std::vector<double> adjusted;
  std::vector<double> tost_p;
  std::vector<double> tost_adjusted;
  for (const auto& by_regime : of.directions) {
    for (const ArmDirection& direction : by_regime) {
      if (!direction.p_holm) continue;
      p.push_back(direction.test->p);
      adjusted.push_back(*direction.p_holm);
      tost_p.push_back(direction.tost->p);
      tost_adjusted.push_back(*direction.tost_p_holm);
    }
  }
  ASSERT_EQ(p.size(), 4u) << "two prompt lengths in two bundles";
  EXPECT_EQ(adjusted, stats::holm(p));
  EXPECT_EQ(tost_adjusted, stats::holm(tost_p));
}

TEST(PortabilityVerdict, MeansOfAllConditionsAndBundlesAreOneFamily) {
  const Portability of = judged({two_arm_regime("a", 10, 9.9), two_arm_regime("b", 10, 10.1),
                                 two_arm_regime("c", 10.2, 9.9)});
  std::vector<double> adjusted;
  std::vector<double> p;
  std::vector<double> tost_adjusted;
  std::vector<double> tost_p;
  const double margin = std::log1p(PortabilityOptions().margin);
  for (const ConditionVerdict& verdict : of.verdicts) {
    ASSERT_TRUE(verdict.ratio && verdict.ratio->error && verdict.p_holm && verdict.tost_p_holm);
    adjusted.push_back(*verdict.p_holm);
    tost_adjusted.push_back(*verdict.tost_p_holm);
    p.push_back(stats::t_test(verdict.ratio->log_ratio, *verdict.ratio->error)->p);
    tost_p.push_back(
        stats::tost(verdict.ratio->log_ratio, *verdict.ratio->error, -margin, margin)->p);
  }
  ASSERT_EQ(p.size(), 8u) << "two arms on two prompt lengths, in two bundles beside the first";
  EXPECT_EQ(adjusted, stats::holm(p));
  EXPECT_EQ(tost_adjusted, stats::holm(tost_p));
}

TEST(PortabilityVerdict, OutcomesAreToldByTheirIntervals) {
  const auto losing = [](const std::string& folder, int64_t lose) {
    MadeRegime made = two_arm_regime(folder, 10, 8);
    made.arms[1].lose = lose;
    return made;
  };
  EXPECT_EQ(beside(losing("a", 0), losing("b", 30)), PortabilityVerdict::kOutcomeFlip);
  EXPECT_EQ(beside(losing("a", 30), losing("b", 0)), PortabilityVerdict::kOutcomeFlip);
  EXPECT_EQ(beside(losing("a", 0), losing("b", 1)), PortabilityVerdict::kUndecided)
      << "one row of 40 is no difference to none";
  EXPECT_EQ(beside(losing("a", 20), losing("b", 40)), PortabilityVerdict::kCrashBoth);
  for (const auto& [a, b] : {std::pair{1, 40}, {40, 1}}) {
    EXPECT_EQ(beside(losing("a", a), losing("b", b)), PortabilityVerdict::kUndecided)
        << "one row of 40 doesn't show that it crashes";
  }
}

// Both arms of `made` on one prompt length, as a function of rows changes them.
Regime changed(const MadeRegime& made, const std::function<void(Bundle&)>& change) {
  Bundle bundle = bundle_of(made, 3);
  change(bundle);
  return condense(bundle, {.allow_single_process = true}).value();
}

const RegimeCell& cell_of(const Regime& regime, const std::string& arm) {
  return *std::ranges::find(regime.cells, arm, &RegimeCell::arm);
}

Estimate fast_beside_eager(const Regime& of) {
  return estimate_beside(cell_of(of, "fast"), cell_of(of, "eager"));
}

TEST(PortabilityPairs, RepetitionsOfOneNumberAreNoPairUnlessBlocksShowThem) {
  MadeRegime made = two_arm_regime("a", 10, 10.2);
  made.processes = 0;
  // Repetitions of one number are alike in both arms, by chance or by the prompt.
  const auto alike = [](Bundle& bundle) {
    for (Row& row : bundle.rows) {
      const double ms = row.arm == "fast" ? 10.2 : 10.0;
      row.latency_ms = ms * (1 + 0.1 * static_cast<double>(row.repetition * 7 % 11));
    }
  };
  const Regime side_by_side = changed(made, alike);
  const Regime not_recorded = changed(made, [&](Bundle& bundle) {
    alike(bundle);
    bundle.manifest["study"].erase("order");
  });
  EXPECT_NEAR(fast_beside_eager(side_by_side).log_ratio, std::log(1.02), 1e-9);
  EXPECT_LT(fast_beside_eager(side_by_side).error->value, 1e-3);
  // Welch's, by hand: both arms have the same relative error.
  std::vector<double> times;
  for (int i = 0; i < 40; ++i) times.push_back(1 + 0.1 * (i * 7 % 11));
  const auto moments = *stats::moments(times);
  const double relative = stats::error_of_mean(moments).value / moments.mean;
  const Estimate welch = fast_beside_eager(not_recorded);
  EXPECT_NEAR(welch.log_ratio, std::log(1.02), 1e-9);
  EXPECT_NEAR(welch.error->value, relative * std::sqrt(2.0), 1e-4);
  EXPECT_NEAR(welch.error->df, 78, 0.1);
}

TEST(PortabilityPairs, ARepetitionMeasuredAgainLaterIsNoPair) {
  MadeRegime made = two_arm_regime("a", 10, 8);
  made.processes = 0;
  made.noise = 0;
  const Regime whole = changed(made, [](Bundle&) {});
  const Regime torn = changed(made, [](Bundle& bundle) {
    for (Row& row : bundle.rows) {
      if (row.arm != "fast" || row.repetition >= 4) continue;
      row.block += 100;
      row.order_index += 1'000'000;
      row.latency_ms = 40;
    }
  });
  EXPECT_NEAR(fast_beside_eager(whole).log_ratio, std::log(0.8), 1e-9);
  EXPECT_NEAR(fast_beside_eager(torn).log_ratio, std::log(0.8), 1e-9);
}

TEST(PortabilityPairs, ProcessesThatServedOneAfterTheOtherAreIndependentSamples) {
  MadeRegime made = two_arm_regime("a", 10, 8);
  const auto shuffled = [](Bundle& bundle) {
    bundle.manifest["study"]["order"] = "shuffled";
    for (Row& row : bundle.rows) row.block = *row.process;
  };
  const Regime regime = changed(made, shuffled);
  const Estimate ratio = fast_beside_eager(regime);
  ASSERT_EQ(ratio.unit, ContrastUnit::kProcesses);
  ASSERT_FALSE(ratio.paired);
  ASSERT_EQ(ratio.shares.size(), 2u);
  for (const UnitShares& arm : ratio.shares) EXPECT_EQ(arm.values.size(), 8u);
  EXPECT_LE(ratio.error->df, 14.0 + 1e-9);
  EXPECT_TRUE(rounds_beside(cell_of(regime, "fast"), cell_of(regime, "eager")).empty());
}

// 40 rows of five processes: `lose` picks the repetitions that the compiled arm loses.
Regime five_processes(const std::string& folder, const std::function<bool(int64_t)>& lose,
                      RowStatus status = RowStatus::kCrash) {
  MadeRegime made = two_arm_regime(folder, 10, 8);
  made.processes = 5;
  Bundle bundle = bundle_of(made, 7);
  for (Row& row : bundle.rows) {
    if (row.arm != "fast" || !lose(row.repetition)) continue;
    row.status = status;
    row.latency_ms.reset();
  }
  return condense(bundle, {}).value();
}

TEST(PortabilityVerdict, AProcessThatDiesIsOneCrashAndNotAsManyAsItsRows) {
  const auto none = [](int64_t) { return false; };
  const auto one_process = [](int64_t repetition) { return repetition < 8; };
  const auto row_by_row = [](int64_t repetition) { return repetition % 5 == 0; };
  const auto verdict = [&](const auto& lose, RowStatus status = RowStatus::kCrash) {
    std::vector<Regime> regimes = {five_processes("a", none), five_processes("b", lose, status)};
    return verdict_of(judge_portability(std::move(regimes), {}).value(), "fast");
  };
  EXPECT_EQ(verdict(one_process), PortabilityVerdict::kUndecided)
      << "one process of five is no difference to none";
  EXPECT_EQ(verdict([](int64_t repetition) { return repetition < 16; }),
            PortabilityVerdict::kUndecided)
      << "nor are two: what lost nothing is five processes too, and not 40 rows";
  EXPECT_EQ(verdict(row_by_row), PortabilityVerdict::kOutcomeFlip);
  EXPECT_EQ(verdict([](int64_t) { return true; }), PortabilityVerdict::kOutcomeFlip);
  const auto interval = [&](const auto& lose, RowStatus status = RowStatus::kCrash) {
    return *five_processes("x", lose, status).cells[1].crashes.interval;
  };
  EXPECT_EQ(five_processes("x", one_process).cells[1].crashes.lost,
            five_processes("x", row_by_row).cells[1].crashes.lost);
  EXPECT_DOUBLE_EQ(interval(one_process).high, stats::wilson_interval(1, 5)->high);
  EXPECT_DOUBLE_EQ(interval(row_by_row).high, stats::wilson_interval(8, 40)->high);
  const auto all = [](int64_t) { return true; };
  EXPECT_DOUBLE_EQ(interval(all).low, stats::wilson_interval(5, 5)->low);
  EXPECT_DOUBLE_EQ(interval(all, RowStatus::kError).low, stats::wilson_interval(40, 40)->low)
      << "each row failed for itself";
}

TEST(PortabilityVerdict, WhatOneBundleLacksIsMissing) {
  const MadeRegime both = two_arm_regime("both", 10, 8);
  MadeRegime eager = both;
  eager.folder = "eager";
  eager.arms.pop_back();
  EXPECT_EQ(verdict_of(judged({both, eager}), "fast"), PortabilityVerdict::kMissingB);
  EXPECT_EQ(verdict_of(judged({eager, both}), "fast"), PortabilityVerdict::kMissingA);
  EXPECT_EQ(verdict_of(judged({both, eager}), "eager"), PortabilityVerdict::kSimilar);
}

TEST(PortabilityVerdict, AMeanIsAsSureAsItsProcessesAre) {
  // 40 rows of eight processes, whose rows alone don't tell that they share a process.
  const Regime regime = regime_of(two_arm_regime("a", 10, 8), 1);
  for (const RegimeCell& cell : regime.cells) {
    ASSERT_TRUE(cell.mean && cell.mean->error);
    EXPECT_LE(cell.mean->error->df, 7 + 1e-9);
  }
}

TEST(PortabilityVerdict, DegreesOfFreedomAreThoseOfTheMeanThatVaries) {
  const CellMean sure{10, 5, 15, stats::StandardError{1e-4, 30}};
  const CellMean unsure{10, 5, 15, stats::StandardError{0.1, 3}};
  EXPECT_NEAR(estimate_between(unsure, sure).error->df, 3, 0.01);
  EXPECT_NEAR(estimate_between(sure, unsure).error->df, 3, 0.01);
  EXPECT_NEAR(estimate_between(unsure, unsure).error->df, 6, 0.01);
  EXPECT_NEAR(estimate_between(unsure, unsure).error->value, std::sqrt(2e-2) / 10, 1e-4);
}

TEST(PortabilityVerdict, OneProcessDecidesNoMeans) {
  MadeRegime a = two_arm_regime("a", 10, 8);
  MadeRegime b = two_arm_regime("b", 10, 8);
  a.processes = b.processes = 0;
  const Portability of = judged({a, b});
  EXPECT_EQ(verdict_of(of, "fast"), PortabilityVerdict::kUndecided);
  EXPECT_THAT(of.verdicts[0].reason, HasSubstr("one process can't show"));
  PortabilityRequest request;
  request.regimes.allow_single_process = true;
  EXPECT_EQ(verdict_of(judged({a, b}, request), "fast"), PortabilityVerdict::kSimilar);
  EXPECT_EQ(beside(a, two_arm_regime("b", 10, 13)), PortabilityVerdict::kDirectionFlip)
      << "arms side by side are pairs, of one process too";
}

TEST(PortabilityVerdict, ArmsThatRanOneAfterTheOtherHaveNoDirection) {
  Bundle a = bundle_of(two_arm_regime("a", 10, 8), 1);
  Bundle b = bundle_of(two_arm_regime("b", 10, 13), 2);
  b.manifest["study"]["order"] = "sequential";
  std::vector<Regime> regimes = {condense(a, {}).value(), condense(b, {}).value()};
  const auto of = judge_portability(std::move(regimes), {});
  ASSERT_TRUE(of);
  EXPECT_EQ(verdict_of(*of, "fast"), PortabilityVerdict::kUndecided);
}

TEST(PortabilityVerdict, BlocksThatEndedWhenItSuitedAreJudgedAtAnyLook) {
  const auto looked_at = [](const std::string& folder, double fast_ms, uint64_t seed) {
    Bundle bundle = bundle_of(two_arm_regime(folder, 10, fast_ms), seed);
    for (auto& [cell, evidence] : bundle.evidence) evidence.stopping = EvidenceStopping{};
    return condense(bundle, {}).value();
  };
  std::vector<Regime> flips = {looked_at("a", 8, 1), looked_at("b", 13, 2)};
  const auto flipped = judge_portability(std::move(flips), {});
  ASSERT_TRUE(flipped);
  EXPECT_EQ(verdict_of(*flipped, "fast"), PortabilityVerdict::kDirectionFlip);
  EXPECT_EQ(flipped->claims[0].regimes[0].state, ClaimState::kGone);
  std::vector<Regime> equal = {looked_at("a", 8, 1), looked_at("b", 10.02, 2)};
  const auto same = judge_portability(std::move(equal), {});
  ASSERT_TRUE(same);
  EXPECT_NE(verdict_of(*same, "fast"), PortabilityVerdict::kDirectionFlip);
}

TEST(PortabilityVerdict, ArmsAreMatchedByWhatTheyAre) {
  MadeRegime a = two_arm_regime("a", 10, 8);
  MadeRegime b = two_arm_regime("b", 10, 8);
  b.arms[1].name = "compiled-dynamic";
  EXPECT_EQ(verdict_of(judged({a, b}), "fast"), PortabilityVerdict::kSimilar);
  b.arms[1].cache = "static";
  EXPECT_EQ(verdict_of(judged({a, b}), "fast"), PortabilityVerdict::kMissingB);
  // Two arms that differ by their names alone go by these.
  a.arms.push_back({"fast-again", "compiled", "dynamic", 8});
  b = a;
  b.folder = "b";
  const Portability of = judged({a, b});
  EXPECT_EQ(of.conditions.size(), 6u);
  EXPECT_EQ(verdict_of(of, "fast-again"), PortabilityVerdict::kSimilar);
}

TEST(PortabilityVerdict, BundlesWithoutACommonConditionAreRefused) {
  MadeRegime a = two_arm_regime("a", 10, 8);
  MadeRegime b = two_arm_regime("b", 10, 8);
  b.phase = Phase::kKvDecode;
  std::vector<Regime> regimes = {regime_of(a, 1), regime_of(b, 2)};
  const auto refused = judge_portability(std::move(regimes), {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "b: expected a condition that a has too, found none: phase is kv_decode instead of "
            "prefill; new_tokens is 64 instead of 0");
}

}  // namespace
}  // namespace assay
