// Latencies of one arm's rows: milliseconds of the rows that findings.h says.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "stats/samples/intervals.h"

namespace assay {

// One arm on one stratum.
struct Latency {
  size_t stratum = 0;
  std::string arm;
  bool parity_failed = false;  // its output differs from the baseline's: never contrasted
  int64_t n = 0;
  std::optional<double> mean;
  std::optional<stats::Interval> mean_interval;  // stats::calibrated_mean_interval()
  // Least and largest mean of fewer than kLeastProcessesOfInterval processes (contrast.h), where
  // the interval would stand: it is absent then.
  std::optional<stats::Interval> mean_process_range;
  std::optional<double> median;
  std::optional<double> sd;
  std::optional<double> min;
  std::optional<double> p90;
  std::optional<double> p95;
  std::optional<double> p99;
  std::optional<double> max;
  std::optional<double> tokens_per_s;  // harmonic mean: tokens over time
  // Joules over tokens produced (of prefill: over the prompts' tokens), over the warm rows whose
  // energy is known. The interval is Student's of the processes' figures, or of the rows' where one
  // process has all of them; absent: fewer than kLeastProcessesOfInterval processes, but not one.
  std::optional<double> joules_per_token;
  std::optional<stats::Interval> joules_interval;
  int64_t energy_n = 0;  // those rows
  int64_t cold_n = 0;    // ok cold rows
  std::optional<double> cold_median;
  std::optional<double> cold_max;
  std::optional<double> mean_with_cold;
  // Effective sample size of the mean, in rows: n / (1 + (m - 1) intraclass) where the cell's
  // processes of m rows differ at 5 % (processes_p_holm), else by the dependence of neighbours
  // within a process.
  std::optional<double> n_effective;
  double widening = 1;    // of the mean's standard error, against that of independent units
  int64_t processes = 0;  // of the warm rows; 0: the bundle doesn't tell
  // Share of a row's variance that lies between processes (intraclass correlation, by analysis of
  // variance), and p of none, after Holm over the phase. Absent: one process, or one row each.
  std::optional<double> intraclass;
  std::optional<double> processes_p_holm;
};

}  // namespace assay
