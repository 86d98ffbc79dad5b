// Units, pairs and typical calls: rows that belong together, and the verdicts that depend on it.
#include "analysis/contrast/units.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/analyze.h"
#include "analysis/rows/summary.h"
#include "analysis/rows/synthetic_bundle.h"

namespace assay {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;
using testing::Pointwise;

// Two arms, eager and static, on one stratum.
struct Pair {
  explicit Pair(SyntheticCell cell = {}) {
    cell.arm = "eager";
    base = bundle.add(cell);
    cell.arm = "static";
    arm = bundle.add(cell);
  }
  void set_ms(const std::string& cell, int64_t repetition, double ms) {
    bundle.row(cell, repetition).latency_ms = ms;
  }
  Findings findings() {
    AnalysisOptions options;
    options.resamples = 2000;
    return *analyze(bundle.build(), options, nullptr);
  }

  SyntheticBundle bundle{7};
  std::string base;
  std::string arm;
};

// Multiplies both arms' rows of each repetition by a factor of the machine's.
template <typename Slowdown>
void share(Pair& pair, int64_t repetitions, const Slowdown& slowdown) {
  for (int64_t r = 0; r < repetitions; ++r) {
    for (const std::string& cell : {pair.base, pair.arm}) {
      *pair.bundle.row(cell, r).latency_ms *= slowdown(r);
    }
  }
}

TEST(Units, UnequalUnitsHaveTheMeanOfTheirRows) {
  const UnitSeries series{{0, 1}, {1, 3}, {10, 20}, {}};
  const std::vector<double> values = unit_values(series);
  EXPECT_DOUBLE_EQ((values[0] + values[1]) / 2, (10 + 3 * 20) / 4.0);
  EXPECT_THAT(values, ElementsAre(DoubleEq(17.5 + 2 * 0.25 * (10 - 17.5)),
                                  DoubleEq(17.5 + 2 * 0.75 * (20 - 17.5))));
  EXPECT_THAT(unit_values({{0, 1}, {2, 2}, {10, 20}, {}}), ElementsAre(10, 20));
}

TEST(Units, BlocksOfWholeCellsPairNothing) {
  Pair pair;
  EXPECT_EQ(pair.findings().contrasts.at(0).unit, ContrastUnit::kRepetitions);
  EXPECT_TRUE(pair.findings().contrasts.at(0).paired);
  pair.bundle.run_by_cells("shuffled");
  EXPECT_EQ(pair.findings().contrasts.at(0).unit, ContrastUnit::kRows);
  EXPECT_FALSE(pair.findings().contrasts.at(0).paired);
}

TEST(Units, APairedErrorIsThatOfTheDifferencesWithinRepetitions) {
  Pair pair({.arm = "eager", .repetitions = 10});
  const Contrast contrast = pair.findings().contrasts.at(0);
  std::vector<double> differences;
  for (int64_t r = 0; r < 10; ++r) {
    differences.push_back(*pair.bundle.row(pair.arm, r).latency_ms -
                          *pair.bundle.row(pair.base, r).latency_ms);
  }
  const auto moments = stats::moments(differences);
  EXPECT_NEAR(contrast.test->statistic, moments->mean / std::sqrt(moments->variance / 10), 1e-9);
  EXPECT_EQ(contrast.test->df, 9);
  EXPECT_EQ(contrast.units_arm, 10);
}

TEST(Units, WhatBothArmsShareCancels) {
  const auto drifting = [](Pair& pair) {
    for (int64_t r = 0; r < 30; ++r) *pair.bundle.row(pair.arm, r).latency_ms *= 1.1;
    share(pair, 30, [](int64_t r) { return r % 7 < 3 ? 2.0 : 1.0; });
  };
  Pair paired;
  drifting(paired);
  const Contrast found = paired.findings().contrasts.at(0);
  EXPECT_EQ(found.verdict, Verdict::kSlower);
  EXPECT_TRUE(found.ratio_interval->contains(1.1));
  EXPECT_LT(found.ratio_interval->high - found.ratio_interval->low, 0.1);

  Pair apart;
  drifting(apart);
  apart.bundle.run_by_cells("shuffled");
  EXPECT_EQ(apart.findings().contrasts.at(0).verdict, Verdict::kInconclusive);
}

TEST(Units, ARepetitionThatOneArmLacksLeavesThePairAndIsCounted) {
  Pair pair({.arm = "eager", .repetitions = 12});
  pair.bundle.row(pair.arm, 3).cold = true;
  pair.bundle.row(pair.base, 5).cold = true;
  const Contrast contrast = pair.findings().contrasts.at(0);
  EXPECT_EQ(contrast.left_out, 2);
  EXPECT_EQ(contrast.units_arm, 10);
  double arm = 0;
  double base = 0;
  for (int64_t r = 0; r < 12; ++r) {
    if (r == 3 || r == 5) continue;
    arm += *pair.bundle.row(pair.arm, r).latency_ms;
    base += *pair.bundle.row(pair.base, r).latency_ms;
  }
  EXPECT_NEAR(contrast.ratio, arm / base, 1e-12);
  EXPECT_TRUE(contrast.ratio_interval->contains(contrast.ratio));
}

TEST(Units, ProcessesAreTheUnitWhereEveryArmHasSeveral) {
  Pair pair({.arm = "eager", .repetitions = 30, .processes = 5, .process_shift = 0.05});
  const Contrast contrast = pair.findings().contrasts.at(0);
  EXPECT_EQ(contrast.unit, ContrastUnit::kProcesses);
  EXPECT_EQ(contrast.units_arm, 5);
  EXPECT_EQ(contrast.test->df, 4);
  const Latency latency = pair.findings().latencies.at(0);
  EXPECT_EQ(latency.processes, 5);
  EXPECT_GT(latency.intraclass, 0.3);
  for (int64_t r = 0; r < 30; ++r) pair.bundle.row(pair.base, r).process = 0;
  EXPECT_EQ(pair.findings().contrasts.at(0).unit, ContrastUnit::kRepetitions);
}

TEST(Units, AProcessThatTookOverIsOfTheRoundThatItTookOverIn) {
  Pair pair({.arm = "eager", .repetitions = 20, .processes = 4});
  // The second process of the arm was lost after two repetitions; all later ones count one more.
  for (int64_t r = 7; r < 20; ++r) {
    Row& row = pair.bundle.row(pair.arm, r);
    row.process = *row.process + 1;
  }
  const Bundle bundle = pair.bundle.build();
  const auto samples = group_rows(bundle, summarize(bundle).arms);
  const Units units(*samples, true);
  EXPECT_THAT(units.series(0).keys, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(units.series(1).keys, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(units.series(1).rows, ElementsAre(5, 5, 5, 5));
}

// Three arms of 5 processes of 6 repetitions, all of them three times as slow in repetition 8.
struct Burst {
  Burst() {
    for (const std::string arm : {"eager", "static", "third"}) {
      cells.push_back(bundle.add({.arm = arm, .repetitions = 30, .processes = 5}));
      *bundle.row(cells.back(), 8).latency_ms *= 3;
    }
  }
  // Leaves the bundle as a run does that was killed before the row was written.
  void drop(size_t cell, int64_t repetition) {
    std::erase_if(bundle.raw().rows, [&](const Row& row) {
      return row.cell_id == cells[cell] && row.repetition == repetition;
    });
  }
  Findings findings() {
    AnalysisOptions options;
    options.resamples = 500;
    return *analyze(bundle.build(), options, nullptr);
  }
  double sum(size_t cell, int64_t without) {
    double ms = 0;
    for (int64_t r = 0; r < 30; ++r) {
      if (r != without) ms += *bundle.row(cells[cell], r).latency_ms;
    }
    return ms;
  }
  SyntheticBundle bundle{11};
  std::vector<std::string> cells;
};

TEST(Units, ARowThatOneArmLacksWithinARoundTakesThatRepetitionOffThePair) {
  Burst whole;
  Burst torn;
  torn.drop(1, 8);
  const Contrast before = whole.findings().contrasts.at(0);
  const Contrast after = torn.findings().contrasts.at(0);
  EXPECT_EQ(before.left_out, 0);
  EXPECT_EQ(after.left_out, 1);
  EXPECT_EQ(after.unit, ContrastUnit::kProcesses);
  EXPECT_EQ(after.units_arm, 5) << "the round stays, with five of its repetitions";
  EXPECT_EQ(after.units_baseline, 5);
  EXPECT_NEAR(after.ratio, whole.sum(1, 8) / whole.sum(0, 8), 1e-12)
      << "the burst that the baseline alone has a row of doesn't count";
  EXPECT_TRUE(after.ratio_interval->contains(1));

  const Bundle bundle = torn.bundle.build();
  const auto samples = group_rows(bundle, summarize(bundle).arms);
  const Units units(*samples, true);
  const PairUnits pair = units.pair({1, 0});
  const PairUnits others = Units(*samples, true).pair({2, 0});
  EXPECT_FALSE(pair.whole);
  for (const size_t round : {0, 2, 3, 4}) {
    EXPECT_DOUBLE_EQ(pair.arm_means[round], units.series(1).mean_ms[round]);
    EXPECT_DOUBLE_EQ(pair.baseline_means[round], others.baseline_means[round])
        << "rounds that lost nothing are as they were";
  }
}

TEST(Units, ARowThatOneArmLacksMovesNoOtherArm) {
  Burst whole;
  Burst torn;
  torn.drop(1, 8);
  const Findings before = whole.findings();
  const Findings after = torn.findings();
  const Contrast& third = after.contrasts.at(1);
  EXPECT_EQ(third.left_out, 0);
  EXPECT_EQ(third.ratio, before.contrasts.at(1).ratio);
  EXPECT_EQ(third.ratio_interval->low, before.contrasts.at(1).ratio_interval->low);
  EXPECT_EQ(third.ratio_interval->high, before.contrasts.at(1).ratio_interval->high);
  EXPECT_EQ(third.test->statistic, before.contrasts.at(1).test->statistic);
  for (const size_t arm : {0, 2}) {
    EXPECT_EQ(after.latencies.at(arm).n, before.latencies.at(arm).n);
    EXPECT_EQ(after.latencies.at(arm).mean, before.latencies.at(arm).mean);
  }
  EXPECT_EQ(after.latencies.at(1).n, 29);
}

TEST(Units, ARoundThatOneArmLacksLeavesThePairWithAllItsRepetitions) {
  Burst torn;
  for (int64_t r = 24; r < 30; ++r) torn.drop(1, r);
  const Contrast contrast = torn.findings().contrasts.at(0);
  EXPECT_EQ(contrast.left_out, 6);
  EXPECT_EQ(contrast.units_arm, 4);
  EXPECT_EQ(contrast.units_baseline, 4);
}

TEST(Units, ConstantArmsStayConstantAsProcesses) {
  Pair pair({.arm = "eager", .repetitions = 21, .processes = 3});
  for (int64_t r = 0; r < 21; ++r) {
    pair.set_ms(pair.base, r, 0.1);
    pair.set_ms(pair.arm, r, 0.3);
  }
  const Contrast contrast = pair.findings().contrasts.at(0);
  EXPECT_NEAR(contrast.ratio_process_range->low, 3, 1e-12);
  EXPECT_NEAR(contrast.ratio_process_range->high, 3, 1e-12);
  EXPECT_NEAR(contrast.test->p, 2.0 / 20, 1e-12) << "three units each, dealt at random";
}

// Arms that took `ms` and `ratio` times that, in turns of 1 and 1.02 so that neither is constant.
Pair steady(double ratio, int64_t repetitions) {
  Pair pair({.arm = "eager", .repetitions = repetitions});
  for (int64_t r = 0; r < repetitions; ++r) {
    const double wobble = 1 + 0.02 * std::sin(static_cast<double>(r * r));
    pair.set_ms(pair.base, r, 10 * wobble);
    pair.set_ms(pair.arm, r, 10 * ratio * (2 - wobble));
  }
  return pair;
}

TEST(Typical, TheIntervalOfAMedianHasTheRanksOfTheBinomialDistribution) {
  Pair pair = steady(0.8, 20);
  std::vector<double> ratios;
  for (int64_t r = 0; r < 20; ++r) {
    ratios.push_back(*pair.bundle.row(pair.arm, r).latency_ms /
                     *pair.bundle.row(pair.base, r).latency_ms);
  }
  std::ranges::sort(ratios);
  const Contrast contrast = pair.findings().contrasts.at(0);
  ASSERT_TRUE(contrast.typical);
  EXPECT_NEAR(contrast.typical->ratio, std::sqrt(ratios[9] * ratios[10]), 1e-12);
  // The interval of 20 values: P(Binomial(20, 1/2) < 6) = 2.07 %, so the 6th and the 15th.
  if (contrast.widening.error == 1) {
    EXPECT_NEAR(contrast.typical->interval->low, ratios[5], 1e-12);
    EXPECT_NEAR(contrast.typical->interval->high, ratios[14], 1e-12);
  }
  EXPECT_LE(contrast.typical->interval->low, ratios[5] + 1e-12);
}

TEST(Typical, FiveRepetitionsHaveNoSuchInterval) {
  EXPECT_FALSE(steady(0.8, 5).findings().contrasts.at(0).typical);
  EXPECT_TRUE(steady(0.8, 10).findings().contrasts.at(0).typical);
}

TEST(Typical, ItDecidesWhereAFewSlowCallsKeepTheMeanFromIt) {
  Pair pair = steady(0.9, 30);
  for (const int64_t r : {4, 11, 23}) pair.set_ms(pair.base, r, r == 11 ? 400 : 900);
  pair.set_ms(pair.arm, 17, 1500);
  const Decision decision = pair.findings().decisions.at(0);
  EXPECT_EQ(decision.kind, Decision::Kind::kUndecided);
  ASSERT_TRUE(decision.typical);
  EXPECT_EQ(decision.typical->arm, "static");
  EXPECT_EQ(decision.typical->rival, "eager");
  EXPECT_EQ(decision.typical->slow_arm, "eager");
  EXPECT_EQ(decision.typical->slow, 3);
  EXPECT_LT(decision.typical->ratio.interval->high, 1);

  Pair equal = steady(1, 30);
  for (const int64_t r : {4, 11, 23}) equal.set_ms(equal.base, r, 900);
  equal.set_ms(equal.arm, 17, 1500);
  EXPECT_FALSE(equal.findings().decisions.at(0).typical);
}

// A tail's ratio of medians, and the findings on single rows.
TEST(SingleRows, AreJudgedByRoundsOfProcesses) {
  SyntheticBundle bundle(21);
  SyntheticCell cell{.arm = "eager", .noise = 0.02, .process_shift = 0.2};
  cell.processes = 5;
  const std::string base = bundle.add(cell);
  cell.arm = "static";
  cell.mean_ms = 6;
  const std::string arm = bundle.add_compiled(cell, "false");
  AnalysisOptions options;
  options.resamples = 500;
  const Findings findings = *analyze(bundle.build(), options, nullptr);
  double log_ratio = 0;
  for (int64_t round = 0; round < 5; ++round) {
    const auto median = [&](const std::string& id) {
      std::vector<double> ms;
      for (int64_t r = 0; r < 6; ++r) ms.push_back(*bundle.row(id, 6 * round + r).latency_ms);
      return *stats::median(stats::sorted(ms));
    };
    log_ratio += std::log(median(arm) / median(base)) / 5;
  }
  const Tail& tail = findings.tails.at(1);
  EXPECT_NEAR(*tail.p50_ratio, std::exp(log_ratio), 1e-12);
  EXPECT_LT(tail.ratio_interval->high, 1) << "a difference that is there is found";
  const Contrast& contrast = findings.contrasts.at(0);
  EXPECT_LT(*contrast.vargha_delaney_a, 0.1);
  EXPECT_LT(*contrast.hedges_g, -1);
  EXPECT_NEAR(*contrast.mann_whitney_u, *contrast.vargha_delaney_a * 30 * 30, 1e-9);
}

TEST(SingleRows, AProcessWithoutRowsLeftCountsWithTheMean) {
  Pair pair({.arm = "eager", .repetitions = 10, .processes = 5});
  const Bundle bundle = pair.bundle.build();
  const Samples samples = *group_rows(bundle, {"eager", "static"});
  const Units units(samples, true);
  std::vector<bool> kept(10, true);
  kept[4] = kept[5] = kept[9] = false;
  const UnitSeries rest = without_rows(units.series(0), samples.groups[0], kept);
  EXPECT_THAT(rest.rows, ElementsAre(2, 2, 0, 2, 1));
  const std::vector<double> values = unit_values(rest);
  const auto& ms = samples.groups[0].warm_ms;
  const double mean = (ms[0] + ms[1] + ms[2] + ms[3] + ms[6] + ms[7] + ms[8]) / 7;
  EXPECT_NEAR(values[2], mean, 1e-12);
  EXPECT_NEAR(*stats::mean(values), mean, 1e-12);
}

TEST(Combined, ProcessesThatServeAllStrataAreOneRoundOfThem) {
  const auto combined = [](bool common) {
    SyntheticBundle bundle(3);
    Random random(5);
    std::vector<std::string> cells;
    for (int stratum = 0; stratum < 4; ++stratum) {
      for (const std::string arm : {"eager", "static"}) {
        cells.push_back(bundle.add({.arm = arm,
                                    .scenario = fmt::format("s{}", stratum),
                                    .noise = 0.01,
                                    .repetitions = 20,
                                    .processes = 5}));
      }
    }
    // Factor by which a process of an arm is slower: in all strata alike, or in each by itself.
    double shift[2][5];
    for (size_t cell = 0; cell < cells.size(); ++cell) {
      if (!common || cell < 2) {
        for (double& s : shift[cell % 2]) s = std::exp(0.05 * standard_normal(random));
      }
      for (int64_t r = 0; r < 20; ++r) {
        *bundle.row(cells[cell], r).latency_ms *= shift[cell % 2][r / 4];
      }
    }
    AnalysisOptions options;
    options.resamples = 2000;
    return analyze(bundle.build(), options, nullptr)->combined.at(0);
  };
  const Contrast together = combined(true);
  const Contrast alone = combined(false);
  EXPECT_EQ(together.test->df, 4);
  const auto width = [](const Contrast& c) {
    return std::log(c.ratio_interval->high / c.ratio_interval->low);
  };
  EXPECT_GT(width(together), 1.3 * width(alone)) << "four strata tell no more than one";
}

// Half of the strata lack the last round, as where a run was interrupted within it.
TEST(Combined, StrataThatLackDifferentRoundsShareTheOthers) {
  constexpr int64_t kProcesses = 8;
  SyntheticBundle bundle(3);
  Random random(5);
  double shift[2][kProcesses];
  for (auto& arm : shift) {
    for (double& s : arm) s = std::exp(0.05 * standard_normal(random));
  }
  for (int stratum = 0; stratum < 4; ++stratum) {
    for (const size_t arm : {0u, 1u}) {
      const std::string cell = bundle.add({.arm = arm == 0 ? "eager" : "static",
                                           .scenario = fmt::format("s{}", stratum),
                                           .noise = 0.001,
                                           .repetitions = 4 * kProcesses,
                                           .processes = kProcesses});
      for (int64_t r = 0; r < 4 * kProcesses; ++r) {
        *bundle.row(cell, r).latency_ms *= shift[arm][r / 4];
      }
    }
  }
  AnalysisOptions options;
  options.resamples = 2000;
  const Contrast whole = analyze(bundle.build(), options, nullptr)->combined.at(0);
  std::erase_if(bundle.raw().rows, [&](const Row& row) {
    const bool reached = row.scenario == "s0" || row.scenario == "s1";
    return !reached && row.repetition >= 4 * (kProcesses - 1);
  });
  const Contrast lacking = analyze(bundle.build(), options, nullptr)->combined.at(0);
  const auto error = [](const Contrast& c) { return std::log(c.ratio) / c.test->statistic; };
  EXPECT_EQ(lacking.units_arm, kProcesses - 1);
  EXPECT_GT(error(lacking), 0.8 * error(whole));
  EXPECT_LT(error(lacking), 1.3 * error(whole));
  const auto width = [](const Contrast& c) {
    return std::log(c.ratio_interval->high / c.ratio_interval->low);
  };
  EXPECT_GT(width(lacking), 0.8 * width(whole));
  EXPECT_LT(width(lacking), 1.5 * width(whole));
}

}  // namespace
}  // namespace assay
