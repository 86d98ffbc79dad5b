// The slow end of an arm's latencies.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "analysis/findings/execution.h"
#include "stats/samples/intervals.h"

namespace assay {

// The tail of one arm's warm rows on a stratum, and compilation's part in it. "High" is p99, and
// the largest sample where there are too few rows for that.
struct Tail {
  size_t stratum = 0;
  std::string arm;
  Execution execution = Execution::kEager;
  int64_t n = 0;
  double p50 = 0;
  double high = 0;
  bool high_is_max = false;
  int64_t slow = 0;             // rows above kSlowFactor times the median
  int64_t slow_recompiled = 0;  // ... that carry a compilation
  int64_t recompiled = 0;       // rows that carry one
  int64_t ran_eager = 0;        // rows of a compiled arm in which something fell back to eager
  std::optional<double> fence;  // Tukey's upper fence: third quartile + 1.5 interquartile ranges
  int64_t beyond_fence = 0;     // rows above it
  int64_t beyond_fence_recompiled = 0;                      // ... that carry a compilation
  std::optional<double> high_without;                       // high of the rows that carry none
  std::optional<double> p50_ratio;                          // to the baseline's p50
  std::optional<stats::Interval> ratio_interval;            // contrast/row_statistics.h
  std::optional<stats::Interval> ratio_process_range = {};  // of processes too few for an interval
};

// A sample this many times its group's median is slow. A machine with other work on it doubles a
// sample now and then; a compilation multiplies it by tens.
inline constexpr double kSlowFactor = 3;

}  // namespace assay
