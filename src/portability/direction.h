// Direction of an arm's difference from the baseline within a regime, condition by condition.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "portability/condition.h"

namespace assay {

struct PortabilityOptions : JudgeOptions {
  // A condition crashes in a regime where the interval of its crash rate lies above this share.
  double crash_share = 0.05;
  int64_t minimum_rows = 5;  // warm ok rows that a ratio needs of each cell
};

// The reason why the cell's times can't be held against any other's; empty: they can.
std::string reason_against(const RegimeCell& cell, const PortabilityOptions& options);

// An arm against the baseline on one stratum of one regime: ln(arm / baseline).
struct ArmDirection : JudgedRatio {
  std::string reason;  // why there is no ratio
};

// Two directions that are known, and opposite.
bool opposite(Verdict a, Verdict b);

// Directions by condition, then regime. `baseline`: the configuration that every other one is held
// against; its own conditions have no direction. All of them are one family, of Holm's adjustment
// for the difference and for the equivalence.
std::vector<std::vector<ArmDirection>> directions(std::span<const PortedCondition> conditions,
                                                  const ArmConfig& baseline,
                                                  const PortabilityOptions& options);

}  // namespace assay
