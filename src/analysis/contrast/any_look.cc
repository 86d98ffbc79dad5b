// Intervals that hold however often a run is looked at.
#include "analysis/contrast/any_look.h"

#include <algorithm>
#include <cmath>

#include "stats/samples/summary.h"
#include "stats/sequential/confidence_sequence.h"

namespace assay {

namespace {

const EvidenceStopping* stopping_of(const Samples& samples, size_t stratum) {
  for (size_t g = samples.first_group[stratum]; g < samples.first_group[stratum + 1]; ++g) {
    const Evidence* evidence = samples.groups[g].evidence;
    if (evidence != nullptr && evidence->stopping) return &*evidence->stopping;
  }
  return nullptr;
}

}  // namespace

bool was_looked_at(const Samples& samples, size_t stratum) {
  return stopping_of(samples, stratum) != nullptr;
}

double margin_at_any_look(const Samples& samples, size_t stratum, const AnalysisOptions& options) {
  const EvidenceStopping* stopping = stopping_of(samples, stratum);
  const bool told = stopping != nullptr && stopping->margin && !options.margin_asked;
  return told ? *stopping->margin : options.margin;
}

void contrast_at_any_look(const PairUnits& units, size_t arms, const AnalysisOptions& options,
                          Contrast& contrast) {
  contrast.any_look = true;
  if (!contrast.paired || contrast.unit != ContrastUnit::kProcesses) return;
  std::vector<double> log_ratios;
  for (size_t i = 0; i < units.arm_means.size(); ++i) {
    const double log_ratio = std::log(units.arm_means[i] / units.baseline_means[i]);
    if (!std::isfinite(log_ratio)) return;
    log_ratios.push_back(log_ratio);
  }
  const auto mean = stats::mean(log_ratios);
  if (!mean) return;
  contrast.ratio = std::exp(*mean);
  const auto pairs = static_cast<double>(arms * (arms - 1)) / 2;
  const double alpha = (1 - options.confidence) / std::max(1.0, pairs);
  if (const auto logs = stats::confirmed_interval(log_ratios, alpha)) {
    contrast.ratio_interval = stats::exp_of(*logs);
  }
}

Verdict verdict_at_any_look(const Contrast& contrast, double margin) {
  if (!contrast.ratio_interval) return Verdict::kInconclusive;
  const stats::Interval& interval = *contrast.ratio_interval;
  if (interval.low > 1 / (1 + margin) && interval.high < 1 + margin) {
    return Verdict::kEquivalent;
  }
  if (interval.contains(1)) return Verdict::kInconclusive;
  return interval.high < 1 ? Verdict::kFaster : Verdict::kSlower;
}

}  // namespace assay
