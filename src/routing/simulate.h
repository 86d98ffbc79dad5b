// A trace replayed over measured rows under several strategies.
//
// One server serves requests one after the other in the order of their arrival; a request's time is
// that of its phases. Each replay draws the bundle's units (processes) anew, and with them every
// row: between arms and strategies a request keeps its quantile, so that they differ by their arms
// and not by luck. docs/judgements.md, "Simulation", has the model and its limits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/process/thread_pool.h"
#include "routing/strategies.h"
#include "stats/samples/intervals.h"

namespace assay {

struct SimulationOptions {
  int64_t replays = 200;
  uint64_t seed = 42;
};

// The mean over replays, and an interval that a replay of the same trace on rows of further
// processes falls into: percentiles of the replays' logarithms, stretched about the mean by
// sqrt(n / (n - 1)) times t's quantile of n - 1 degrees over the normal one, n the units.
struct SimulatedFigure {
  double mean = 0;
  std::optional<stats::Interval> interval;  // absent: one unit
};

// A trigger in the replays, of a rule of the policy or of another strategy.
struct SimulatedTrigger {
  std::string strategy;
  std::optional<size_t> rule;  // of the policy
  std::string fallback;        // arm
  TriggerKind kind = TriggerKind::kLostRow;
  int64_t fired = 0;    // replays
  double diverted = 0;  // mean number of requests a replay that went to the fallback after it
};

struct SimulatedStrategy {
  std::string name;
  std::string takes;
  std::string unavailable;
  // Mean number a replay of requests that no arm may serve, or whose arm lost them as it lost rows.
  double lost = 0;
  double compilations = 0;                // mean number a replay
  std::optional<SimulatedFigure> p50_ms;  // absent: every request was lost
  std::optional<SimulatedFigure> p95_ms;
  std::optional<SimulatedFigure> p99_ms;
  std::optional<SimulatedFigure> per_s;  // requests served a second
  // Ratio of the mean latency to that of the best possible choice, less 1. The best possible choice
  // serves each phase of each request by the allowed arm with the lowest mean there, every shape
  // compiled beforehand. Absent if requests were lost, since those that are left aren't the same.
  std::optional<SimulatedFigure> regret;
};

struct Simulation {
  SimulationOptions options;
  std::string model;
  std::string trace;  // its name
  std::string hash;
  int64_t requests = 0;  // of the trace
  int64_t replayed = 0;
  std::vector<std::pair<std::string, int64_t>> outside;
  std::vector<Phase> phases;
  size_t units = 0;
  std::optional<double> asked_per_s;  // requests that arrive; absent: all at once
  std::vector<SimulatedStrategy> strategies;
  std::vector<SimulatedTrigger> triggers;  // those that fired in some replay
};

// Factor by which an interval of so few units reaches further than its resamples show: sqrt(n / (n
// - 1)) times t's quantile of n - 1 degrees over the normal one. 1 for n < 2.
double stretch_of_units(size_t units);

Simulation simulate(const ReplayData& data, const Policy& policy, const PlannedTrace& plan,
                    const SimulationOptions& options, ThreadPool* pool);

}  // namespace assay
