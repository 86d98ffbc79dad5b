// Findings as `assay bench` shows them: one row a test and arm.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/describe/speeds.h"
#include "analysis/findings/findings.h"

namespace assay {

// A model as its files have it.
struct BenchedModel {
  std::string name;  // in the study
  std::string path;
  uint64_t size_bytes = 0;  // of the weights
  uint64_t parameters = 0;
};

struct BenchRow {
  BenchedModel model;
  Speed speed;
  Stratum stratum;
  std::string test;                    // "pp512", "tg64", "tg64 @ d512", "pp128 b4"
  std::optional<double> tokens_per_s;  // tokens over the mean time
  std::optional<double> mean_ms;
  std::optional<stats::Interval> mean_interval_ms;
  std::optional<stats::Interval> mean_process_range_ms;  // of processes too few for an interval
  std::optional<double> sd_ms;
  std::optional<double> limit_bytes_per_s;  // of memory; absent: not measured, or none that binds
  std::optional<double> operations_per_s;   // of a prompt on a GPU
  std::optional<double> limit_operations_per_s;
  std::optional<double> joules_per_token;  // absent: not counted
  std::optional<stats::Interval> joules_interval;
  std::optional<double> ratio;  // of the mean time to the baseline's
  std::optional<stats::Interval> ratio_interval;
  std::optional<stats::Interval> ratio_process_range;  // likewise
  bool one_process = false;  // an arm ran in a single one, so that no test decides
  std::string verdict;       // of that ratio; empty: the baseline's row; "not comparable": no ratio
};

struct Bench {
  std::string host;      // "AMD EPYC 9V74 x 2"
  std::string commit;    // empty: not known
  std::string baseline;  // arm
  std::string started_at;
  // The rows by model in the order given, then by test, then by arm.
  std::vector<BenchRow> rows;
  std::vector<std::string> sentences;  // one a phase (phase_answers.h)
  // Reasons to doubt the rows: one line each.
  std::vector<std::string> remarks;
};

// `speeds` are of the bundle that `findings` are of, and `models` the study's.
Bench make_bench(const Findings& findings, const std::vector<Speed>& speeds,
                 const std::vector<BenchedModel>& models);

}  // namespace assay
