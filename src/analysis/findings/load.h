// Servers under load: an arm's figures at each point of the load curve. Requests count from their
// scheduled times, over each run's window (load/load_run.h); runs are the unit that repeats.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/findings/strata.h"
#include "load/offered_load.h"
#include "stats/samples/intervals.h"

namespace assay {

// A figure over the runs of one arm at one point.
struct OverRuns {
  double mean = 0;
  // Student's over runs; absent: fewer than kLeastProcessesOfInterval (contrast.h). Where several
  // runs share a process, over the processes.
  std::optional<stats::Interval> interval = {};
  double least = 0;  // of the runs
  double most = 0;
};

// A latency's mean and quantiles in each run, over the runs. Absent: some run can't tell it.
struct LatencyOverRuns {
  std::optional<OverRuns> mean = {};
  std::optional<OverRuns> p50 = {};
  std::optional<OverRuns> p95 = {};
  std::optional<OverRuns> p99 = {};
};

// An arm keeps its bounds at a point, or not, by the interval of the share of requests that do.
enum class BoundsKept { kYes, kNo, kUndecided };

struct LoadFigures {
  size_t stratum = 0;
  std::string arm;
  LoadPoint point;
  int64_t runs = 0;                            // that the figures are of
  int64_t lost_runs = 0;                       // that aren't ok: their figures aren't among these
  double window_s = 0;                         // mean length of a run's window
  int64_t requests = 0;                        // scheduled in the windows of all runs
  std::map<std::string, int64_t> failed = {};  // of them, by class
  OverRuns offered_per_s;
  OverRuns requests_per_s;
  OverRuns tokens_per_s;
  LatencyOverRuns latency_ms;
  LatencyOverRuns ttft_ms;
  LatencyOverRuns tpot_ms;
  LatencyOverRuns itl_ms;
  // Share of requests within the bounds, and such requests a second; absent: there are no bounds.
  // The share's interval is at least Wilson's of all requests.
  std::optional<OverRuns> within_bounds = {};
  std::optional<OverRuns> good_per_s = {};
  BoundsKept kept = BoundsKept::kUndecided;
  std::optional<OverRuns> cached = {};  // share of prompt tokens; absent: some run doesn't tell it
  OverRuns in_flight;
  int64_t most_in_flight = 0;
  double late_p99_ms = 0;    // of the run whose sends were latest
  int64_t growing_runs = 0;  // whose queue grew: their latencies depend on the run's length
};

// An arm and a point of which no run tells a figure.
struct LostLoadPoint {
  size_t stratum = 0;
  std::string arm;
  std::map<std::string, int64_t> runs = {};  // by class of their rows
};

struct LoadSummary {
  ServiceBounds slo = {};
  std::vector<LoadFigures> points = {};  // by stratum, then arm; empty: nothing was measured so
  std::vector<LostLoadPoint> lost = {};  // likewise
};

// Share of requests that have to keep the bounds.
inline constexpr double kShareToKeep = 0.95;

template <>
struct EnumWords<BoundsKept> {
  static constexpr BoundsKept kAll[] = {BoundsKept::kYes, BoundsKept::kNo, BoundsKept::kUndecided};
  static std::string_view name(BoundsKept kept) {
    return kept == BoundsKept::kYes ? "yes" : kept == BoundsKept::kNo ? "no" : "undecided";
  }
};

// Points of one arm that differ in their load alone.
using LoadSeries = std::vector<const LoadFigures*>;
// The arm's series, in the order of their first points: by model, new tokens, and the scenario that
// the load is put on.
std::vector<LoadSeries> load_series(const LoadSummary& load, const std::vector<Stratum>& strata,
                                    const std::string& arm);

// The most requests a second that are served within the bounds: of the points that keep them the
// one with the highest rate. Null: none does.
const LoadFigures* best_kept(const LoadSeries& series);

// The first point from which on there is no more to be had: an open loop's rate that isn't followed
// (95 % of it lies above the interval of what ended, or the queue grew in most runs), or the closed
// loop's concurrency whose tokens a second are less than 10 % above those of the point before it.
// Null: no such point was measured.
const LoadFigures* saturation(const LoadSeries& series);

}  // namespace assay
