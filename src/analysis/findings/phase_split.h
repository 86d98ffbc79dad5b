// Prefill and decode put together.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/findings/reach.h"
#include "stats/samples/intervals.h"

namespace assay {

// Worth of an arm's prefill if so many tokens are decoded after it.
struct SplitAt {
  int64_t new_tokens = 0;
  bool extrapolated = false;                      // more than any that was measured
  double prefill_share = 0;                       // prefill's gain over the baseline's whole time
  double ratio = 1;                               // of the whole times, arm / baseline
  std::optional<stats::Interval> ratio_interval;  // of lengths that were measured
};

// Prefill and decode of one arm put together, on one model, scenario and batch.
struct PhaseSplit {
  std::string model;
  std::string scenario;
  int64_t batch = 1;
  std::string arm;
  size_t prefill_stratum = 0;
  double gain_ms = 0;  // prefill of the baseline less that of the arm
  // Processes too few for an interval have the range of their gains, and no other interval.
  std::optional<stats::Interval> gain_interval;
  std::optional<stats::Interval> gain_process_range = {};
  std::vector<SplitAt> at;
  // Decode length from which on the prefill's gain is less than the margin of the baseline's whole
  // time; absent unless the prefill surely gains. breaks_even: if the arm decodes slower, the
  // length that uses the gain up.
  std::optional<double> stops_mattering;
  std::optional<Reach> stops_interval;
  std::optional<double> breaks_even;
  std::optional<Reach> even_interval;
};

}  // namespace assay
