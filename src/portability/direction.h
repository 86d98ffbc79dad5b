// Direction of an arm's difference from the baseline within a regime, condition by condition.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/findings/contrast.h"
#include "portability/condition.h"
#include "portability/ratio_of_cells.h"

namespace assay {

struct PortabilityOptions {
  double margin = 0.05;  // similar: the ratio of means within 1/(1+margin) .. 1+margin
  double alpha = 0.05;   // of each declared family
  double confidence = 0.95;
  // A condition crashes in a regime where the interval of its crash rate lies above this share.
  double crash_share = 0.05;
  int64_t minimum_rows = 5;  // warm ok rows that a ratio needs of each cell
  int64_t resamples = 4000;
  uint64_t seed = 42;
};

// The reason why the cell's times can't be held against any other's; empty: they can.
std::string reason_against(const RegimeCell& cell, const PortabilityOptions& options);

// An arm against the baseline on one stratum of one regime.
struct ArmDirection {
  std::optional<LogRatioEstimate> ratio;  // arm / baseline; absent: `reason` says why
  std::optional<stats::TestResult> test;
  std::optional<stats::TestResult> tost;
  std::optional<double> p_holm;
  std::optional<double> tost_p_holm;
  Verdict verdict = Verdict::kInconclusive;
  std::string reason;
};

// Two directions that are known, and opposite.
bool opposite(Verdict a, Verdict b);

// Directions by condition, then regime. `baseline`: the configuration that every other one is held
// against; its own conditions have no direction. All of them are one family, of Holm's adjustment
// for the difference and for the equivalence.
std::vector<std::vector<ArmDirection>> directions(std::span<const PortedCondition> conditions,
                                                  const ArmConfig& baseline,
                                                  const PortabilityOptions& options);

// The errors of ratios whose values are repetitions, which neighbours make less sure: widened as
// series of one family. Those of rounds stay as they are.
std::vector<LogRatioEstimate> estimates_of(std::span<const PairedRatio> ratios, bool by_rounds);

}  // namespace assay
