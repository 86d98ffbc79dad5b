// Options of an analysis.
#pragma once

#include <cstdint>

namespace assay {

// Confidence of every interval in findings, judgements and probes; their texts and columns say 95
// %.
inline constexpr double kConfidence = 0.95;

// The choices that an analysis declares beforehand; findings carry them.
struct AnalysisOptions {
  double margin = 0.03;       // equivalence: ratio of means within 1/(1+margin) .. 1+margin
  bool margin_asked = false;  // as an option; else the study's counts, if it has one
  double alpha = 0.05;        // family-wise, for each of the two claims (differs, equivalent)
  double power = 0.8;         // of the minimum detectable effect
  int64_t resamples = 10000;
  uint64_t seed = 42;
  int64_t minimum_rows = 5;  // warm ok rows that a contrast needs of each arm
  double cold_factor = 3;    // a first sample this many times the median of the rest is skew
  double notable = 0.01;     // drifts and disagreements below this share aren't findings
  // Arms of one process each are judged by their rows, as if nothing differed between processes.
  bool allow_single_process = false;
};

}  // namespace assay
