// Comparisons by processes: a difference from one to the next is no regression.
#include "analysis/compare/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/compare/two_arms.h"

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(CompareProcesses, OneProcessASideIsNotDecided) {
  const Bundle base = run_of(1, {.arm = "eager", .noise = 0.01});
  const Bundle cand = run_of(2, {.arm = "eager", .mean_ms = 15, .noise = 0.01});
  const Bundle several = run_of(3, {.arm = "eager", .mean_ms = 15, .noise = 0.01, .processes = 5});
  for (const auto& [left, right] :
       {std::pair{&base, &cand}, {&base, &several}, {&several, &cand}}) {
    const Comparison comparison = *compare(*left, *right, {}, {});
    EXPECT_EQ(comparison.undecided(), 6);
    EXPECT_THAT(comparison.failures(true), IsEmpty());
    for (const auto* cells : {&comparison.cells, &comparison.combined}) {
      for (const ComparedCell& cell : *cells) {
        EXPECT_FALSE(cell.verdict || cell.test || cell.ratio_interval || cell.tost);
      }
    }
    EXPECT_EQ(comparison_to_json(comparison)["cells"][0]["status"], "not_decided");
    EXPECT_EQ(comparison.families.at(0).members, 0);
  }
  EXPECT_GT(compare(base, cand, {}, {})->cells.at(0).ratio, 1.4) << "the estimate is shown";
  CompareOptions allowed;
  allowed.allow_single_process = true;
  const Comparison by_rows = *compare(base, cand, allowed, {});
  EXPECT_EQ(by_rows.undecided(), 0);
  EXPECT_EQ(regressed(by_rows).size(), 6u);
}

// Two or three processes a side leave a t interval one to four degrees of freedom.
TEST(CompareProcesses, FewerThanFourHaveARangeWhichAVerdictNeeds) {
  for (const int64_t processes : {2, 3, 4}) {
    const SyntheticCell like{.arm = "eager", .noise = 0.001, .processes = processes};
    const auto beside = [&](double factor) {
      SyntheticCell cell = like;
      cell.mean_ms *= factor;
      return *compare(run_of(1, like), run_of(2, cell), {}, {});
    };
    const bool few = processes < 4;
    const Comparison doubled = beside(2);
    for (const auto* cells : {&doubled.cells, &doubled.combined}) {
      for (const ComparedCell& cell : *cells) {
        EXPECT_EQ(cell.too_few, few);
        EXPECT_EQ(cell.ratio_interval.has_value(), !few);
        ASSERT_EQ(cell.ratio_range.has_value(), few);
        EXPECT_EQ(cell.typical->ratio_interval.has_value(), !few);
        EXPECT_EQ(cell.verdict, Verdict::kSlower);
        if (!few) continue;
        EXPECT_TRUE(cell.ratio_range->contains(cell.ratio));
        EXPECT_GT(cell.ratio_range->low, 1.9);
      }
    }
    EXPECT_EQ(comparison_to_json(doubled)["cells"][0]["ratio_range"].is_null(), !few);
    EXPECT_EQ(doubled.failures(true).front().contains(" range "), few);
  }
  Comparison near = *compare(
      run_of(1, {.arm = "eager", .noise = 1e-6, .processes = 3}),
      run_of(2, {.arm = "eager", .mean_ms = 10.19, .noise = 1e-6, .processes = 3}), {}, {});
  for (const ComparedCell& cell : near.cells) {
    EXPECT_LT(*cell.p_holm, 1e-6);
    EXPECT_NE(cell.verdict, Verdict::kSlower) << "less than the margin, by three processes";
  }
}

TEST(CompareProcesses, ACrashOrAMissingCellFailsWithOneProcessToo) {
  const Bundle base = run_of(1, {.arm = "eager", .noise = 0.01});
  Bundle cand = run_of(2, {.arm = "eager", .noise = 0.01});
  std::erase_if(cand.rows, [](const Row& row) {
    return row.arm.str() == "static" && row.scenario.str() == "single_long";
  });
  EXPECT_THAT(compare(base, cand, {}, {})->failures(false), ElementsAre(HasSubstr("missing")));
}

// Number of alarms in 60 pairs of runs of one program, and in 30 with a candidate so much slower.
struct Pairs {
  int alarms = 0;
  int found = 0;
};
Pairs count_pairs(const SyntheticCell& like, const CompareOptions& options, double slower = 1.1) {
  Pairs pairs;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const Bundle base = run_of(1000 + 2 * seed, like);
    const auto fails = [&](double factor) {
      SyntheticCell cell = like;
      cell.mean_ms *= factor;
      const Bundle cand = run_of(1001 + 2 * seed, cell);
      return !compare(base, cand, options, {})->failures(true).empty();
    };
    pairs.alarms += fails(1) ? 1 : 0;
    if (seed < 30) pairs.found += fails(slower) ? 1 : 0;
  }
  return pairs;
}

TEST(CompareProcesses, ProcessesThatDifferAreNoRegression) {
  const SyntheticCell like{.arm = "eager", .noise = 0.02, .processes = 10, .process_shift = 0.05};
  const Pairs judged = count_pairs(like, {});
  EXPECT_LE(judged.alarms, 3);
  EXPECT_GE(judged.found, 27);
  // One process a side, as bundles were before: its rows know nothing of the next process.
  SyntheticCell one = like;
  one.processes = 1;
  CompareOptions allowed;
  allowed.allow_single_process = true;
  EXPECT_GT(count_pairs(one, allowed).alarms, 30);
  EXPECT_EQ(count_pairs(one, {}).alarms, 0);
  EXPECT_EQ(count_pairs(one, {}).found, 0) << "nothing is claimed either";
}

TEST(CompareProcesses, WhatRunsDifferByIsNoRegressionWhereOtherCellsShowIt) {
  const SyntheticCell like{.arm = "eager", .noise = 0.02, .processes = 10, .run_shift = 0.02};
  EXPECT_LE(count_pairs(like, {}).alarms, 6);
  const Comparison comparison = *compare(run_of(7, like), run_of(8, like), {}, {});
  ASSERT_TRUE(comparison.between_cells);
  EXPECT_GT(*comparison.between_cells, 0.01);
  EXPECT_LT(*comparison.between_cells, 0.06);
}

TEST(CompareProcesses, FewProcessesMakeWideIntervals) {
  const auto width = [](int64_t processes) {
    const SyntheticCell like{
        .arm = "eager", .noise = 0.02, .processes = processes, .process_shift = 0.02};
    const Comparison comparison = *compare(run_of(1, like), run_of(2, like), {}, {});
    double sum = 0;
    for (const ComparedCell& cell : comparison.cells) {
      if (!cell.ratio_interval) return -1.0;
      sum += std::log(cell.ratio_interval->high / cell.ratio_interval->low);
      EXPECT_EQ(cell.base->processes, processes);
      EXPECT_TRUE(cell.base->process_noise);
    }
    return sum;
  };
  EXPECT_GT(width(4), 1.5 * width(15));
  EXPECT_EQ(width(2), -1) << "too few processes for an interval";
}

}  // namespace
}  // namespace assay
