// `compare --run`, several runs a side, and histories, in worlds in which runs differ.
#include "calibration_parts.h"

#include <span>
#include <string>
#include <vector>

#include "analysis/compare/compare.h"
#include "analysis/compare/history.h"
#include "analysis/compare/runs.h"
#include "analysis/compare/sides.h"
#include "calibration_lines.h"
#include "calibration_worlds.h"

namespace assay {
namespace {

constexpr size_t kRunsASide = 5;
constexpr size_t kHistory = 10;

bool fails(const Result<Comparison>& comparison) {
  return !comparison->failures(true).empty();
}

// Both sides of one arm on five strata. Drift is the machine's, so both sides of a cell have it.
Bundle both_sides(const World& world, double factor, Random random) {
  SyntheticBundle bundle(random());
  bundle.raw().manifest["study"]["sides"] = {{"base", "old"}, {"cand", "new"}};
  for (int stratum = 0; stratum < kStrata; ++stratum) {
    SyntheticCell cell = cell_of(world, 10, random);
    cell.scenario = fmt::format("s{}", stratum);
    for (const bool cand : {false, true}) {
      cell.arm = cand ? "eager@cand" : "eager@base";
      cell.mean_ms = cand ? 10 * factor : 10;
      bundle.add(cell);
    }
  }
  return bundle.build();
}

// The same cells of one program.
Bundle one_side(const World& world, double factor, Random random) {
  SyntheticBundle bundle(random());
  for (int stratum = 0; stratum < kStrata; ++stratum) {
    SyntheticCell cell = cell_of(world, 10 * factor, random);
    cell.scenario = fmt::format("s{}", stratum);
    bundle.add(cell);
  }
  return bundle.build();
}

// `compare --run`, and a single pair of bundles with the same margin.
void add_sides(const World& world, double slower, double least, CalibrationLines& lines) {
  const CompareOptions options{.margin = kSidesMargin};
  const auto found = lines.count(4, [&](Random random, int64_t* flags) {
    flags[0] = fails(compare_sides(both_sides(world, 1, Random(random())), options));
    if (least > 0 || lines.shows()) {
      flags[1] = fails(compare_sides(both_sides(world, slower, Random(random())), options));
    }
    if (!lines.shows()) return;
    const Bundle base = one_side(world, 1, Random(random()));
    flags[2] = fails(compare(base, one_side(world, 1, Random(random())), options, {}));
    flags[3] = fails(compare(base, one_side(world, slower, Random(random())), options, {}));
  });
  const std::string equal = "same program; " + world.name;
  const std::string planted = fmt::format("{:.0f} % slower; {}", (slower - 1) * 100, world.name);
  lines.add("compare --run fails", equal, found[0], 0, 0.05);
  lines.add("one pair of bundles fails", equal, found[2], 0, 1);
  lines.add("compare --run fails", planted, found[1], least, 1);
  lines.add("one pair of bundles fails", planted, found[3], 0, 1);
}

// Runs of a program, and without what shows the machine's part of them.
std::vector<Bundle> runs_of(const World& world, size_t count, double factor, bool yardsticks,
                            Random& random) {
  std::vector<Bundle> runs;
  for (size_t i = 0; i < count; ++i) {
    Bundle& run = runs.emplace_back(run_of(world, kStrata, factor, Random(random())));
    if (yardsticks) continue;
    for (Row& row : run.rows) {
      row.yardstick_lookups_us.reset();
      row.yardstick_multiplies_us.reset();
    }
  }
  return runs;
}

// Several runs a side, and a history whose last run is the base, beside one pair.
void add_runs(const World& world, bool yardsticks, CalibrationLines& lines) {
  constexpr double kRunSlowdown = 1.1;
  const CompareOptions options;
  const auto found = lines.count(6, [&](Random random, int64_t* flags) {
    const auto past = runs_of(world, kHistory, 1, yardsticks, random);
    History history;
    for (const Bundle& run : past) (void)history.add(run);
    const std::span base(past.end() - kRunsASide, past.end());
    for (const bool equal : {true, false}) {
      if (!equal && !lines.shows()) continue;
      const auto cand = runs_of(world, kRunsASide, equal ? 1 : kRunSlowdown, yardsticks, random);
      int64_t* of = flags + (equal ? 0 : 3);
      if (lines.shows()) of[0] = fails(compare(base.back(), cand[0], options, {}));
      of[1] = fails(compare_runs(base, cand, options, {}));
      of[2] = fails(compare_with_history(base.back(), cand[0], options, {}, history));
    }
  });
  for (const bool equal : {true, false}) {
    const std::string truth = (equal ? "same program; " : "10 % slower; ") + world.name;
    const size_t at = equal ? 0 : 3;
    const double most = equal ? 0.05 : 1;
    lines.add("one pair of bundles fails", truth, found[at], 0, 1);
    lines.add(fmt::format("{} runs a side fail", kRunsASide), truth, found[at + 1], 0, most);
    lines.add(fmt::format("a pair beside {} earlier runs fails", kHistory), truth, found[at + 2], 0,
              most);
  }
}

}  // namespace

bool calibrate_runs(int64_t trials, uint64_t seed) {
  CalibrationLines lines(trials, seed, 5);
  World pairs = world_of_shifts("2 % noise, processes differ by 1 %", 0.02, 0.01, 0, 20);
  pairs.repetitions = 200;
  add_sides(pairs, 1.02, 0.9, lines);
  World few = world_of_shifts("2 % noise, 5 processes that differ by 1 %", 0.02, 0.01, 0, 5);
  few.repetitions = 50;
  add_sides(few, 1.02, 0, lines);
  World drifting = pairs;
  drifting.name += ", drift 20 %";
  drifting.drift = 0.2;
  add_sides(drifting, 1.02, 0.9, lines);
  World moody = pairs;
  moody.name += ", moods of processes 10 %, of runs 5 %";
  moody.process_mood = 0.1;
  moody.run_mood = 0.05;
  moody.missed = 0.2;
  add_sides(moody, 1.02, 0.9, lines);
  World stopped = pairs;
  stopped.name += ", 1 % stops of 100 times";
  stopped.spike_rate = 0.01;
  stopped.spike_factor = 100;
  add_sides(stopped, 1.02, 0.9, lines);

  add_runs(world_of_shifts("5 % noise, processes differ by 5 %", 0.05, 0.05, 0, 10), false, lines);
  add_runs(world_of_shifts("5 % noise, processes differ by 5 %, runs by 2 %", 0.05, 0.05, 0.02, 10),
           false, lines);
  World runs = moody_runs();
  runs.repetitions = 60;
  add_runs(runs, true, lines);
  runs.name += ", no yardsticks";
  add_runs(runs, false, lines);
  fmt::print("\n`assay compare` that knows more than two bundles show\n\n");
  return lines.print();
}

}  // namespace assay
