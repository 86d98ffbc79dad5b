// Arms along model size.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/findings/reach.h"
#include "artifact/row.h"
#include "stats/hypotheses/anova.h"
#include "stats/samples/intervals.h"

namespace assay {

// One arm against the baseline along model size, under one condition.
struct SizeRatio {
  std::string model;
  double size = 0;
  double ratio = 1;
  std::optional<stats::Interval> interval;
  std::optional<stats::Interval> process_range = {};  // as the contrast's
};
struct SizeCrossover {
  std::string arm;
  std::vector<SizeRatio> ratios;    // by size
  std::optional<double> crossover;  // the size at which the ratio crosses 1; absent: it doesn't
  std::optional<Reach> interval;
};

// Arm by model under one phase, scenario, decode length and batch: ln(ms) of all arms and models
// that are comparable there.
struct SizeAnalysis {
  Phase phase = Phase::kPrefill;
  std::string scenario;
  int64_t new_tokens = 0;
  int64_t batch = 1;
  std::vector<std::string> arms;
  std::vector<std::string> models;
  std::optional<stats::TwoWayAnova> type2;
  std::optional<double> interaction_p_holm;  // over the conditions of a phase
  std::vector<SizeCrossover> crossovers;     // where sizes are known
};

}  // namespace assay
