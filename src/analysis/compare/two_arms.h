// Runs of two arms on three prompt lengths, and comparisons of two of them: helpers of the
// comparison's tests.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "analysis/compare/compare.h"
#include "analysis/rows/synthetic_bundle.h"

namespace assay {

inline const std::vector<std::pair<std::string, int>> kScenarios = {
    {"single_micro", 10}, {"single_short", 30}, {"single_long", 200}};

// `slower` multiplies the arm static's time on single_long.
struct TwoArms {
  explicit TwoArms(uint64_t seed, double slower = 1, double noise = 0.01) : bundle(seed) {
    for (const auto& [scenario, tokens] : kScenarios) {
      for (const std::string arm : {"eager", "static"}) {
        SyntheticCell cell{.arm = arm, .scenario = scenario, .prompt_tokens = tokens};
        cell.noise = noise;
        cell.mean_ms = 10;
        cell.processes = 10;
        if (arm == "static" && tokens == 200) cell.mean_ms *= slower;
        cells.push_back(bundle.add(cell));
      }
    }
  }
  SyntheticBundle bundle;
  std::vector<std::string> cells;  // eager and static of each scenario
};

inline Comparison compared(TwoArms& base, TwoArms& cand, CompareOptions options = {}) {
  auto result = compare(base.bundle.build(), cand.bundle.build(), options, {});
  EXPECT_TRUE(result) << result.error().message;
  return *std::move(result);
}

// Arm and scenario.
inline std::vector<std::string> regressed(const Comparison& comparison) {
  std::vector<std::string> names;
  for (const ComparedCell& cell : comparison.cells) {
    if (cell.regression)
      names.push_back(cell.arm + " " + comparison.strata[*cell.stratum].scenario);
  }
  return names;
}

// Two arms on the three lengths, every cell as `like`.
inline Bundle run_of(uint64_t seed, const SyntheticCell& like) {
  SyntheticBundle bundle(seed);
  for (const auto& [scenario, tokens] : kScenarios) {
    for (const std::string arm : {"eager", "static"}) {
      SyntheticCell cell = like;
      cell.arm = arm;
      cell.scenario = scenario;
      cell.prompt_tokens = tokens;
      bundle.add(cell);
    }
  }
  return bundle.build();
}

}  // namespace assay
