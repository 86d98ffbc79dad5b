// Intervals that hold however often a run is looked at.
#include "analysis/contrast/any_look.h"

#include <algorithm>
#include <cmath>

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

std::vector<double> log_ratios_of(const Estimate& of_rounds) {
  std::vector<double> logs;
  for (const UnitShares& sample : of_rounds.shares) {
    for (const double share : sample.values) logs.push_back(of_rounds.log_ratio + share);
  }
  return logs;
}

void contrast_at_any_look(const Estimate& of_rounds, size_t arms, Contrast& contrast) {
  contrast.any_look = true;
  if (!of_rounds.why_absent.empty()) return;
  const std::vector<double> log_ratios = log_ratios_of(of_rounds);
  contrast.ratio = std::exp(of_rounds.log_ratio);
  const auto pairs = static_cast<double>(arms * (arms - 1)) / 2;
  const double alpha = (1 - kConfidence) / std::max(1.0, pairs);
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
