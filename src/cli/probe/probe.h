// A command probed without a study: its invocations, their results, and the output.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/tables/table.h"
#include "base/text/text_pattern.h"
#include "stats/estimates/reproduction.h"
#include "stats/samples/summary.h"
#include "study/probe_study.h"

namespace assay::cli {

// The user's statements about a bundle's cell.
struct ProbeSave {
  std::string bundle;  // folder; empty: nothing is kept
  ProbedCell cell;
  std::optional<int64_t> samples;  // of an invocation; absent: as many as the last warm-up printed
  // Given, they are the cell's.
  std::optional<int64_t> prompt_tokens;
  std::optional<int64_t> new_tokens;
};

struct ProbeOptions {
  std::vector<std::string> command;
  std::string pattern;
  std::string unit;
  std::string workdir;
  std::optional<double> target;
  stats::BandLimits bands;
  int64_t repetitions = 5;
  int64_t warmup = 1;  // invocations
  int64_t skip = 0;    // samples of each invocation
  double timeout_s = 600;
  bool verbose = false;
  ProbeSave save = {};
};

// One invocation and its result.
struct Probed {
  bool warmup = false;
  std::optional<double> seconds;  // absent: read from a bundle, whose rows don't have it
  std::vector<double> values;     // without those that are skipped
  std::string status = "ok";
  std::string error_class = {};
  std::string message = {};

  std::optional<double> mean() const { return stats::mean(values); }
};

struct ProbeResult {
  std::vector<Probed> invocations;
  std::vector<double> means;  // of the invocations that count and have a value
  int64_t lost = 0;           // of the invocations that count
  std::optional<stats::Interval> interval;
  stats::Reproduction reproduction;  // where there is a target
};

// True if the figure is an invocation's wall clock: no pattern and no unit tell another.
bool times_invocations(const ProbeOptions& options);

// The pattern that takes the figure. bad_input: one with other than one named group.
Result<TextPattern> probe_pattern(const ProbeOptions& options);

// Runs the command so many times, and shows its progress on a terminal. `pattern` is null where the
// invocations are timed. Absent: the user stopped it.
Result<std::optional<std::vector<Probed>>> probe_invocations(const ProbeOptions& options,
                                                             const TextPattern* pattern,
                                                             int64_t warmups, int64_t measured);

// The figures over the invocations that count.
ProbeResult probe_result(const ProbeOptions& options, std::vector<Probed> invocations);

// Checks --save's further demands before anything runs: a folder that is free, and a figure that a
// row can hold.
Status check_probe_save(const ProbeOptions& options, const TextPattern& pattern);

// Warms up, measures the rest as `assay run` measures a study of one command arm, and reads the
// values from the rows. The analysis and the report are written into the bundle. Absent: the user
// stopped it, and a message has named the part that is kept.
Result<std::optional<std::vector<Probed>>> probe_into_bundle(const ProbeOptions& options,
                                                             const TextPattern& pattern);

// `pattern`: its text; empty where invocations were timed.
void show_probe(const ProbeOptions& options, const std::string& pattern, const ProbeResult& result,
                OutputFormat format);

}  // namespace assay::cli
