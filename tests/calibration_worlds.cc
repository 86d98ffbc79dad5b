// Worlds by name, and bundles of rows drawn in them.
#include "calibration_worlds.h"

#include <algorithm>
#include <utility>

namespace assay {

World by_rows(World world) {
  world.name += ", one process";
  world.processes = 0;
  return world;
}

World world_of_shifts(std::string name, double noise, double process, double run,
                      int64_t processes) {
  World world{std::move(name), noise};
  world.process_shift = process;
  world.run_shift = run;
  world.processes = processes;
  return world;
}

std::vector<World> noisy_worlds(bool all) {
  if (!all) {
    const std::vector<World> worlds = noisy_worlds(true);
    return {worlds[0], worlds[2], worlds[5], worlds[7]};
  }
  return {World{"5 % noise"},
          World{"5 % noise, 2 % spikes", 0.05, 0.02},
          World{"5 % noise, autocorrelation 0.3", 0.05, 0, 0.3},
          World{"5 % noise, autocorrelation 0.6", 0.05, 0, 0.6},
          World{"5 % noise, drift 2 %", 0.05, 0, 0, 0.02},
          World{"5 % noise, 2 % spikes, autocorrelation 0.3, drift 2 %", 0.05, 0.02, 0.3, 0.02},
          World{"2 % noise, 2 % spikes, autocorrelation 0.5, drift 2 %", 0.02, 0.02, 0.5, 0.02},
          World{"5 % noise, 10 % spikes of 30 times, 5 repetitions", 0.05, 0.1, 0, 0, 30, 5},
          World{"30 % noise, 20 % spikes of 10 times, 10 repetitions", 0.3, 0.2, 0, 0, 10, 10}};
}

World stopped_calls() {
  World stopped =
      world_of_shifts("5 % noise, 1 % stops of 100 times, 100 repetitions, processes differ by 5 %",
                      0.05, 0.05, 0, 10);
  stopped.spike_rate = 0.01;
  stopped.spike_factor = 100;
  stopped.repetitions = 100;
  return stopped;
}

World busy_neighbours() {
  World beside =
      world_of_shifts("5 % noise, a tenth of 20 processes takes 1.7 times as long", 0.05, 0, 0, 20);
  beside.repetitions = 200;
  beside.neighbour_rate = 0.1;
  return beside;
}

World moody_runs() {
  World moody =
      world_of_shifts("2 % noise, moods of 20 processes 10 %, of runs 5 %", 0.02, 0, 0, 20);
  moody.repetitions = 200;
  moody.run_mood = 0.05;
  moody.process_mood = 0.1;
  moody.missed = 0.2;
  return moody;
}

SyntheticCell cell_of(const World& world, double mean_ms, Random& random) {
  SyntheticCell cell{.arm = "eager", .mean_ms = mean_ms};
  cell.noise = world.noise;
  cell.spike_rate = world.spike_rate;
  cell.spike_factor = world.spike_factor;
  cell.repetitions = world.repetitions;
  cell.autocorrelation = world.autocorrelation;
  cell.drift = world.drift * standard_normal(random);
  cell.processes = std::min(world.processes, world.repetitions);
  cell.process_shift = world.process_shift;
  cell.run_shift = world.run_shift;
  cell.neighbour_rate = world.neighbour_rate;
  cell.run_mood = world.run_mood;
  cell.process_mood = world.process_mood;
  cell.missed = world.missed;
  return cell;
}

Bundle run_of(const World& world, int strata, double factor, Random random) {
  SyntheticBundle bundle(random());
  for (int stratum = 0; stratum < strata; ++stratum) {
    for (const std::string arm : {"eager", "static"}) {
      SyntheticCell cell = cell_of(world, 10 * factor, random);
      cell.arm = arm;
      cell.scenario = fmt::format("s{}", stratum);
      bundle.add(cell);
    }
  }
  return bundle.build();
}

}  // namespace assay
