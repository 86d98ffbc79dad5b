// The headline matrix: compilation's gain in prefill and its lost rows in decode, regime by regime
// and model class by model class.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "portability/direction.h"

namespace assay {

// The model's name without its folder and its size: "gpt2" of gpt2-25m, "qwen2.5" of qwen2.5-0.5b.
std::string model_class(const std::string& model);

// One arm's models of one class in one regime.
struct HeadlineCell {
  size_t regime = 0;
  ArmConfig config;
  std::string arm;
  std::string model_class;
  int64_t prefill_strata = 0;  // of those that can be compared
  int64_t prefill_left_out = 0;
  // 1 less the geometric mean over strata of arm / baseline; absent: no stratum can be compared.
  std::optional<double> prefill_gain;
  std::optional<stats::Interval> gain_interval;
  std::optional<stats::Interval> gain_range = {};  // in its place: Estimate
  std::optional<CrashRate> decode_crashes;  // over its kv_decode strata; absent: none was attempted
};

// Cells of every arm but the baseline; by regime, arm, then class as models first appear.
std::vector<HeadlineCell> headline_matrix(std::span<const PortedCondition> conditions,
                                          std::span<const std::vector<ArmDirection>> directions,
                                          const ArmConfig& baseline);

}  // namespace assay
