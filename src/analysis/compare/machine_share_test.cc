// Tests the machine's share that yardsticks take off a ratio, and the rest that they leave in it.
#include "analysis/compare/machine_share.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analysis/compare/two_arms.h"

namespace assay {
namespace {

// Processes whose figure is exp(level + 0.5 x + 0.2 y) by their yardsticks' logarithms x and y.
ProcessFigures exact_side(double level, double machine) {
  ProcessFigures side;
  for (int64_t i = 0; i < 6; ++i) {
    const double x = machine + 0.01 * static_cast<double>(i * i);
    const double y = machine / 2 + 0.02 * static_cast<double>(i % 3);
    side.numbers.push_back(i);
    side.values_ms.push_back(std::exp(level + 0.5 * x + 0.2 * y));
    side.log_yardsticks.push_back({x, y});
  }
  return side;
}

TEST(MachineShare, TakesOffWhatYardsticksExplain) {
  ProcessFigures base = exact_side(0, 0);
  ProcessFigures cand = exact_side(std::log(1.1), 0.3);
  const auto share = take_machine_off(base, cand);
  ASSERT_TRUE(share);
  EXPECT_NEAR(share->ratio, std::exp(0.5 * 0.3 + 0.2 * 0.15), 1e-9);
  EXPECT_NEAR(share->yardsticks[0], std::exp(0.3), 1e-9);
  EXPECT_NEAR(share->yardsticks[1], std::exp(0.15), 1e-9);
  EXPECT_NEAR(share->explained, 1, 1e-9);
  EXPECT_NEAR(share->error.value, 0, 1e-6);
  for (size_t i = 0; i < base.size(); ++i) {
    EXPECT_NEAR(cand.values_ms[i] / base.values_ms[i], 1.1, 1e-9);
    EXPECT_NEAR(base.values_ms[i], base.values_ms[0], 1e-9);
  }
}

TEST(MachineShare, WhatYardsticksMissIsInTheError) {
  ProcessFigures base = exact_side(0, 0);
  ProcessFigures cand = exact_side(0, 0.3);
  for (ProcessFigures* side : {&base, &cand}) {
    for (size_t i = 0; i < side->size(); ++i) side->values_ms[i] *= i % 2 == 0 ? 1.05 : 0.95;
  }
  const auto share = take_machine_off(base, cand);
  ASSERT_TRUE(share);
  EXPECT_GT(share->explained, 0.1);
  EXPECT_LT(share->explained, 0.5);
  const double log_ratio = std::log(share->ratio);
  const double missed = log_ratio * log_ratio * (1 - share->explained) / share->explained;
  EXPECT_GT(share->error.value * share->error.value, missed);
  EXPECT_EQ(share->error.df, 12 - 2 - 2);
  EXPECT_NEAR(share->widening, 10.0 / 8, 1e-12);
}

TEST(MachineShare, IsAbsentWhereNothingCanBeLearnt) {
  const auto absent = [](ProcessFigures base, ProcessFigures cand) {
    const std::vector<double> before = cand.values_ms;
    return !take_machine_off(base, cand) && cand.values_ms == before;
  };
  const ProcessFigures base = exact_side(0, 0);
  ProcessFigures cand = exact_side(0, 0.3);
  EXPECT_FALSE(absent(base, cand));

  ProcessFigures few = cand;
  few.numbers.resize(4), few.values_ms.resize(4), few.log_yardsticks.resize(4);
  EXPECT_TRUE(absent(base, few)) << "four processes";

  ProcessFigures without = cand;
  without.log_yardsticks.clear();
  EXPECT_TRUE(absent(base, without)) << "a row without yardsticks";

  ProcessFigures still = base, also_still = cand;
  for (ProcessFigures* side : {&still, &also_still}) {
    for (auto& x : side->log_yardsticks) x[1] = 2.5;
  }
  EXPECT_TRUE(absent(still, also_still)) << "a yardstick that doesn't vary";

  ProcessFigures alike = base, also_alike = cand;
  for (ProcessFigures* side : {&alike, &also_alike}) {
    for (auto& x : side->log_yardsticks) x[1] = 2 * x[0];
  }
  EXPECT_TRUE(absent(alike, also_alike)) << "two yardsticks that say the same";

  ProcessFigures unmoved = base, also_unmoved = cand;
  for (ProcessFigures* side : {&unmoved, &also_unmoved}) {
    for (size_t i = 0; i < side->size(); ++i) side->values_ms[i] = i % 2 == 0 ? 1.0 : 1.0001;
  }
  EXPECT_TRUE(absent(unmoved, also_unmoved)) << "yardsticks that explain nothing";
}

SyntheticCell moody_cell() {
  SyntheticCell cell{.arm = "eager", .noise = 0.02, .repetitions = 60};
  cell.processes = 20;
  cell.run_mood = 0.06;
  cell.process_mood = 0.1;
  cell.missed = 0.15;
  return cell;
}

// Results of 30 pairs of runs: alarms of equal programs, and alarms where the candidate takes 1.1
// times as long.
std::pair<int, int> alarms_and_found(bool machine_off) {
  CompareOptions options;
  options.machine_off = machine_off;
  std::pair<int, int> counts;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    SyntheticCell slower = moody_cell();
    slower.mean_ms *= 1.1;
    const Bundle base = run_of(500 + 3 * seed, moody_cell());
    const auto fails = [&](uint64_t cand_seed, const SyntheticCell& like) {
      return !compare(base, run_of(cand_seed, like), options, {})->failures(true).empty();
    };
    counts.first += fails(501 + 3 * seed, moody_cell());
    counts.second += fails(502 + 3 * seed, slower);
  }
  return counts;
}

TEST(MachineShare, TellsASlowMachineFromASlowProgram) {
  const auto [alarms, found] = alarms_and_found(true);
  const auto [alarms_as_measured, found_as_measured] = alarms_and_found(false);
  EXPECT_LE(alarms, 2);
  EXPECT_GE(found, 27);
  EXPECT_GT(alarms_as_measured, alarms);
  EXPECT_LT(found_as_measured, found - 5);
}

TEST(MachineShare, IsLeftInWhereAnotherMachineIsCompared) {
  const Bundle base = run_of(1, moody_cell());
  Bundle cand = run_of(2, moody_cell());
  const auto adjusted = [&](const std::set<std::string>& vary) {
    return compare(base, cand, {}, vary)->cells.at(0).machine.has_value();
  };
  EXPECT_TRUE(adjusted({}));
  cand.manifest["identity"]["code_sha"] = "def";
  EXPECT_TRUE(adjusted({"code_sha"}));
  cand.manifest["identity"]["cpu"] = "Example CPU 3.0";
  EXPECT_FALSE(adjusted({"code_sha", "device", "cpu"}));
}

}  // namespace
}  // namespace assay
