// Two equal command arms: one after the other in each round, each invocation in a mood of its own.
#include "calibration_parts.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "analysis/analyze.h"
#include "analysis/rows/synthetic_bundle.h"
#include "calibration_lines.h"
#include "stats/hypotheses/tests.h"
#include "stats/samples/summary.h"

namespace assay {
namespace {

constexpr int64_t kSamples = 8;  // of an invocation

struct CommandWorld {
  std::string name;
  int64_t invocations = 10;
  double between = 0.05;  // sd of the logarithm, of invocations
  double within = 0.003;  // and of the samples of one
};

// In a round the arms' invocations run in random order, and the samples of each in one piece.
Bundle run_of_commands(const CommandWorld& world, Random random) {
  SyntheticBundle made(random());
  for (const char* arm : {"eager", "static"}) {
    SyntheticCell cell{.arm = arm};
    cell.noise = world.within;
    cell.repetitions = world.invocations * kSamples;
    cell.processes = world.invocations;
    cell.process_shift = world.between;
    made.add(cell);
  }
  Bundle bundle = made.build();
  std::map<int64_t, bool> swapped;
  for (Row& row : bundle.rows) {
    row.backend = "command";
    row.compile_mode = "";
    swapped.try_emplace(*row.process, random.uniform() < 0.5);
  }
  std::ranges::stable_sort(bundle.rows, {}, [&](const Row& row) {
    const bool second = (row.arm == std::string("static")) != swapped.at(*row.process);
    return std::tuple(*row.process, second, row.repetition);
  });
  int64_t place = 0;
  for (Row& row : bundle.rows) row.order_index = place++;
  return bundle;
}

// The verdict if every sample were an observation: Welch's test over all of them.
bool samples_differ(const Bundle& bundle) {
  std::vector<double> eager;
  std::vector<double> other;
  for (const Row& row : bundle.rows) {
    (row.arm == std::string("eager") ? eager : other).push_back(*row.latency_ms);
  }
  const auto a = *stats::moments(eager), b = *stats::moments(other);
  const auto error = stats::welch_standard_error(a, b);
  return error && stats::t_test(a.mean - b.mean, *error)->p < 0.05;
}

void add_command_world(const CommandWorld& world, CalibrationLines& lines) {
  AnalysisOptions options;
  options.resamples = 1000;
  const auto found = lines.count(3, [&](Random random, int64_t* flags) {
    const Bundle bundle = run_of_commands(world, random);
    const Contrast contrast = analyze(bundle, options, nullptr)->contrasts.at(0);
    flags[0] = contrast.verdict == Verdict::kFaster || contrast.verdict == Verdict::kSlower;
    flags[1] = contrast.ratio_interval && contrast.ratio_interval->contains(1);
    flags[2] = samples_differ(bundle);
  });
  lines.add("commands: equal arms differ", world.name, found[0], 0, 0.05);
  lines.add("commands: the ratio's interval covers", world.name, found[1], 0.93, 1);
  lines.add("Welch's test over all samples: equal arms differ", world.name, found[2], 0, 0.05,
            false);
}

}  // namespace

bool calibrate_commands(int64_t trials, uint64_t seed) {
  CalibrationLines lines(trials, seed, 9);
  for (const int64_t invocations : {5, 10, 20}) {
    add_command_world({fmt::format("{} invocations of {} samples; 5 % between, 0.3 % within",
                                   invocations, kSamples),
                       invocations},
                      lines);
  }
  add_command_world({"10 invocations of 8 samples; 0.3 % between, 3 % within", 10, 0.003, 0.03},
                    lines);
  fmt::print("\ntwo equal commands, one invocation a round each\n\n");
  return lines.print();
}

}  // namespace assay
