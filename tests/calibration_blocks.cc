// Two equal arms on five strata of one run, interleaved: what holds for pairs of blocks in worlds
// made for comparisons of two runs.
#include "calibration_parts.h"

#include <string>
#include <vector>

#include "analysis/analyze.h"
#include "calibration_lines.h"
#include "calibration_worlds.h"

namespace assay {
namespace {

// Drift is the machine's, so both arms of a stratum have it.
Bundle interleaved_run(const World& world, Random random) {
  SyntheticBundle bundle(random());
  for (int stratum = 0; stratum < kStrata; ++stratum) {
    SyntheticCell cell = cell_of(world, 10, random);
    cell.scenario = fmt::format("s{}", stratum);
    for (const std::string arm : {"eager", "static"}) {
      cell.arm = arm;
      bundle.add(cell);
    }
  }
  return bundle.build();
}

bool any_differs(const std::vector<Contrast>& contrasts) {
  return std::ranges::any_of(contrasts, [](const Contrast& contrast) {
    return contrast.verdict == Verdict::kFaster || contrast.verdict == Verdict::kSlower;
  });
}

bool covers_one(const Contrast& contrast) {
  return contrast.ratio_interval && contrast.ratio_interval->contains(1);
}

// The promises of docs/calibration.md on pairs, which don't hold in every world.
struct Promise {
  bool alarms = true;
  bool coverage = true;
};

Promise promise_in(const World& world) {
  // Ten rounds seldom show that an arm's own noise goes on from one process to the next; slow calls
  // hide what all others depend on; and where few rounds or rows hold a slow call, too wide an
  // interval is the rule.
  const bool goes_on = world.autocorrelation > 0 && world.processes > 0;
  const bool hidden = world.autocorrelation > 0 && world.spike_rate > 0;
  const bool few_rounds = world.processes > 0 && world.repetitions <= 30;
  const bool few_slow = world.spike_rate > 0 && (few_rounds || world.spike_rate >= 0.1);
  return {!goes_on, !goes_on && !hidden && !few_slow};
}

void add_world(const World& world, CalibrationLines& lines) {
  AnalysisOptions options;
  options.resamples = 1000;
  // Too few for an interval: a range stands there, which promises no coverage.
  const bool few = world.processes > 0 && world.processes < kLeastProcessesOfInterval;
  const auto [alarms, coverage] = promise_in(world);
  if (!alarms && !coverage && !few && !lines.shows()) return;
  const auto found = lines.count(5, [&](Random random, int64_t* flags) {
    const Findings findings = *analyze(interleaved_run(world, random), options, nullptr);
    flags[0] = any_differs(findings.contrasts);
    flags[1] = any_differs(findings.combined);
    flags[2] = covers_one(findings.contrasts.at(0));
    flags[3] = covers_one(findings.combined.at(0));
    flags[4] = findings.contrasts.at(0).ratio_interval || findings.combined.at(0).ratio_interval;
  });
  lines.add("paired: one of five differs", world.name, found[0], 0, 0.05, alarms);
  lines.add("paired: combined differs", world.name, found[1], 0, 0.05, alarms);
  if (few) {
    lines.add("paired: an interval stands", world.name, found[4], 0, 0);
    return;
  }
  lines.add("paired: interval covers", world.name, found[2], 0.93, 0.97, coverage);
  lines.add("paired: combined interval covers", world.name, found[3], 0.93, 0.97, coverage);
}

}  // namespace

bool calibrate_blocks(int64_t trials, uint64_t seed) {
  CalibrationLines lines(trials, seed, 4);
  for (const World& world : noisy_worlds(lines.shows())) {
    add_world(world, lines);
    add_world(by_rows(world), lines);
  }
  for (const World& world :
       {world_of_shifts("5 % noise, processes differ by 5 %", 0.05, 0.05, 0, 10),
        world_of_shifts("2 % noise, processes differ by 30 %", 0.02, 0.3, 0, 10),
        world_of_shifts("5 % noise, processes differ by 5 %, 5 processes", 0.05, 0.05, 0, 5),
        world_of_shifts("5 % noise, processes differ by 5 %, 2 processes", 0.05, 0.05, 0, 2),
        stopped_calls(), busy_neighbours(), moody_runs()}) {
    add_world(world, lines);
  }
  fmt::print("\ntwo equal arms of one run, interleaved, on five strata\n\n");
  return lines.print();
}

}  // namespace assay
