// Worlds of a calibration: what machines do to latencies, and runs in them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/rows/synthetic_bundle.h"

namespace assay {

constexpr int kStrata = 5;  // of the runs that blocks and several runs a side are drawn in

// A machine's effects on latencies.
struct World {
  std::string name;
  double noise = 0.05;
  double spike_rate = 0;
  double autocorrelation = 0;
  double drift = 0;  // sd over runs and cells of the drift from first to last row
  double spike_factor = 3;
  int64_t repetitions = 30;
  double process_shift = 0;   // sd of the logarithm of a process' factor
  double run_shift = 0;       // and of a cell's in one run
  int64_t processes = 10;     // 0: one, judged by its rows
  double neighbour_rate = 0;  // of processes that take 1.7 times as long
  double run_mood = 0;        // what all cells of a run share, and yardsticks show but for `missed`
  double process_mood = 0;
  double missed = 0;
};

// The same, where rows name no process.
World by_rows(World world);

// A world with these standard deviations of the logarithm between processes and between a cell's
// runs.
World world_of_shifts(std::string name, double noise, double process, double run,
                      int64_t processes);

// Noise, spikes, autocorrelation, drift, heavy tails, and several of them; or four of these.
std::vector<World> noisy_worlds(bool all);

// A few calls that the machine stops for long.
World stopped_calls();

// A world like two virtual cores with neighbours: src/stats/samples/summary.h's trimmed means were
// made for it.
World busy_neighbours();

// All cells of one run are slower: yardsticks show it, but for a fifth.
World moody_runs();

SyntheticCell cell_of(const World& world, double mean_ms, Random& random);

// Two arms on `strata` prompt lengths, 30 repetitions each unless the world says otherwise.
Bundle run_of(const World& world, int strata, double factor, Random random);

}  // namespace assay
