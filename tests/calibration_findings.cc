// Named findings and verdicts in worlds of a machine's changes, of processes that differ, of slow
// calls and of rounds that depend on one another: names without cause, and causes that are named.
#include "calibration_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "analysis/analyze.h"
#include "analysis/compare/compare.h"
#include "analysis/rows/synthetic_bundle.h"
#include "base/text/counts.h"
#include "calibration_lines.h"

namespace assay {
namespace {

// Two arms on some strata.
struct RowsWorld {
  std::string name;
  int strata = 5;
  SyntheticCell cell = {};  // of each, but for arm and scenario
  // Changes the rows; empty: nothing does.
  std::function<void(Random&, std::vector<Row>&)> change = {};
};

RowsWorld world_of(int64_t processes, int64_t rows, double noise, int strata = 5) {
  RowsWorld world{.name = {}, .strata = strata};
  world.cell.noise = noise;
  world.cell.processes = processes;
  world.cell.repetitions = processes * rows;
  world.name = fmt::format("{} of {}, {}, {:g} % noise", counted(processes, "process", "processes"),
                           counted(rows, "row"), counted(2 * strata, "cell"), noise * 100);
  return world;
}

RowsWorld with(RowsWorld world, std::string_view more,
               const std::function<void(SyntheticCell&)>& change) {
  world.name += fmt::format("; {}", more);
  change(world.cell);
  return world;
}

Bundle bundle_in(const RowsWorld& world, Random random, bool is_one_arm_slow = false) {
  SyntheticBundle bundle(random());
  for (int stratum = 0; stratum < world.strata; ++stratum) {
    for (const std::string arm : {"eager", "static"}) {
      SyntheticCell cell = world.cell;
      cell.arm = arm;
      cell.scenario = fmt::format("s{}", stratum);
      if (is_one_arm_slow && arm == "eager") cell.spike_rate = 0;
      // An arm with slow calls has the mean of the other one.
      cell.mean_ms = 10 / (1 + cell.spike_rate * (cell.spike_factor - 1));
      bundle.add(cell);
    }
  }
  if (world.change) world.change(random, bundle.raw().rows);
  return bundle.build();
}

// From the middle process on the machine is slower.
void slower_half(Random&, std::vector<Row>& rows, int64_t processes) {
  for (Row& row : rows) {
    if (2 * *row.process >= processes) *row.latency_ms *= 1.1;
  }
}

// The first call of each process, or of the first one alone, takes six times as long.
void slow_starts(std::vector<Row>& rows, bool all) {
  std::map<std::string, int64_t> last;
  for (Row& row : rows) {
    const auto [at, is_new] = last.try_emplace(row.cell_id, -1);
    const bool starts = *row.process != at->second;
    at->second = *row.process;
    if (starts && (all || is_new)) *row.latency_ms *= 6;
  }
}

// Rounds of the second arm that are alike: first-order, of 5 %.
void alike_rounds(Random& random, std::vector<Row>& rows, double r) {
  std::map<std::string, std::pair<int64_t, double>> states;  // by cell: process, deviation
  for (Row& row : rows) {
    if (row.arm != "static") continue;
    const auto [at, is_new] = states.try_emplace(row.cell_id, -1, standard_normal(random));
    auto& [process, state] = at->second;
    if (!is_new && process != *row.process) {
      state = r * state + std::sqrt(1 - r * r) * standard_normal(random);
    }
    process = *row.process;
    *row.latency_ms *= std::exp(0.05 * state);
  }
}

class FindingLines : public CalibrationLines {
 public:
  FindingLines(int64_t trials, uint64_t seed) : CalibrationLines(trials, seed, 11) {
    options_.resamples = 200;
  }

  // Bundles with a finding of one of these kinds.
  void named(const std::vector<std::string>& kinds, const RowsWorld& world, double least,
             double most) {
    if (least <= 0 && most >= 1 && !shows()) return;
    const auto found = count(1, [&](Random random, int64_t* flags) {
      const Findings findings = *analyze(bundle_in(world, random), options_, nullptr);
      flags[0] = std::ranges::any_of(findings.named, [&](const Finding& finding) {
        return std::ranges::find(kinds, finding.kind) != kinds.end();
      });
    });
    add("named: " + fmt::format("{}", fmt::join(kinds, " or ")), world.name, found[0], least, most);
  }

  // Bundles in which a stratum of two arms with equal means is decided the one way or the other:
  // the first, or any of them.
  void decided(const RowsWorld& world, bool any, double most) {
    if (most >= 1 && !shows()) return;
    const auto found = count(1, [&](Random random, int64_t* flags) {
      const Findings findings = *analyze(bundle_in(world, random, !any), options_, nullptr);
      for (const Contrast& contrast : findings.contrasts) {
        if (!any && *contrast.stratum != 0) continue;
        const bool differs =
            contrast.verdict == Verdict::kFaster || contrast.verdict == Verdict::kSlower;
        flags[0] = flags[0] != 0 || differs;
      }
    });
    add(any ? "one of the strata differs" : "the stratum differs", world.name, found[0], 0, most);
  }

  // `compare --fail-on-regression` of two runs of one program.
  void compared(const RowsWorld& world, double most) {
    const auto found = count(1, [&](Random random, int64_t* flags) {
      const Bundle base = bundle_in(world, Random(random()));
      const Bundle cand = bundle_in(world, Random(random()));
      flags[0] = !compare(base, cand, {}, {})->failures(true).empty();
    });
    add("compare fails", world.name, found[0], 0, most);
  }

 private:
  AnalysisOptions options_;
};

// Changes of the machine from process to process, and what looks like them.
void add_changes(FindingLines& lines) {
  const std::vector<std::string> both = {"drift", "level_change"};
  const auto drifts = [](SyntheticCell& cell) { cell.drift = 0.1; };
  const auto differ = [](SyntheticCell& cell) { cell.process_shift = 0.03; };
  for (const auto& [processes, rows] : {std::pair{5, 6}, {10, 6}}) {
    const RowsWorld quiet = world_of(processes, rows, 0.05);
    lines.named(both, quiet, 0, 0.05);
    lines.named(both, with(quiet, "processes differ by 3 %", differ), 0, 0.05);
    lines.named(
        both,
        with(quiet, "moods of rounds, 3 %", [](SyntheticCell& cell) { cell.process_mood = 0.03; }),
        0, 0.05);
    lines.named(both,
                with(quiet, "a tenth of the processes takes 1.7 times as long",
                     [](SyntheticCell& cell) { cell.neighbour_rate = 0.1; }),
                0, 0.05);
    RowsWorld drifting = with(quiet, "a drift of 10 %", drifts);
    RowsWorld stepping = quiet;
    stepping.name += "; 10 % more from the middle on";
    stepping.change = [of = processes](Random& random, std::vector<Row>& changed) {
      slower_half(random, changed, of);
    };
    lines.named({"drift"}, drifting, 0.8, 1);
    lines.named({"level_change"}, stepping, 0.8, 1);
    const double least = processes > 5 ? 0.8 : 0;  // five rounds leave three degrees of freedom
    lines.named({"drift"}, with(drifting, "processes differ by 3 %", differ), least, 1);
    lines.named({"level_change"}, with(stepping, "processes differ by 3 %", differ), least, 1);
  }
  const RowsWorld few = world_of(5, 12, 0.02, 1);
  lines.named({"drift"}, with(few, "a drift of 10 %", drifts), 0.8, 1);
}

void add_processes(FindingLines& lines) {
  for (const auto& [processes, rows] : {std::pair{5, 6}, {10, 10}}) {
    const RowsWorld alike = world_of(processes, rows, 0.02);
    const RowsWorld differing = with(alike, "processes differ by 5 %",
                                     [](SyntheticCell& cell) { cell.process_shift = 0.05; });
    lines.named({"processes_differ"}, alike, 0, 0.05);
    lines.named({"processes_differ"}, differing, 0.95, 1);
    lines.named({"autocorrelation"}, differing, 0, 0.05);
    const RowsWorld dependent = with(alike, "autocorrelation of rows 0.6",
                                     [](SyntheticCell& cell) { cell.autocorrelation = 0.6; });
    lines.named({"autocorrelation"}, dependent, processes > 5 ? 0.8 : 0, 1);
    lines.named({"processes_differ"}, dependent, 0, 1);
  }
}

void add_starts(FindingLines& lines) {
  const auto slow_calls = [](SyntheticCell& cell) {
    cell.spike_rate = 0.05;
    cell.spike_factor = 5;
  };
  for (const auto& [processes, rows, strata] :
       {std::tuple{1, 30, 1}, {1, 30, 5}, {5, 6, 1}, {10, 12, 1}, {10, 12, 5}}) {
    RowsWorld world = with(world_of(processes, rows, 0.03, strata),
                           "5 % of calls take 5 times as long, two warm-ups too", slow_calls);
    world.cell.warmup = 2;
    world.cell.cold_factor = 1;
    lines.named({"cold_start_skew"}, world, 0, 0.05);
  }
  for (const bool all : {true, false}) {
    RowsWorld starts = world_of(5, 12, 0.03, 1);
    starts.name += all ? "; the first call of each process takes 6 times as long"
                       : "; the first call of the first process takes 6 times as long";
    starts.change = [all](Random&, std::vector<Row>& rows) { slow_starts(rows, all); };
    lines.named({"cold_start_skew"}, starts, 0.95, 1);
  }
}

void add_verdicts(FindingLines& lines) {
  const auto rare = [](SyntheticCell& cell) {
    cell.spike_rate = 0.02;
    cell.spike_factor = 5;
  };
  const std::string_view one_arm = "2 % of one arm's calls take 5 times as long, equal means";
  for (const auto& [rows, strata, most] : {std::tuple{3, 5, 0.05}, {6, 5, 0.05}, {3, 1, 1.0}}) {
    lines.decided(with(world_of(10, rows, 0.05, strata), one_arm, rare), false, most);
  }
  for (const auto& [rounds, strata, most] :
       {std::tuple{20, 5, 0.05}, {16, 3, 0.05}, {10, 5, 1.0}, {10, 1, 1.0}}) {
    RowsWorld alike = world_of(rounds, 3, 0.01, strata);
    alike.name += "; rounds of one arm differ by 5 %, autocorrelation 0.6";
    alike.change = [](Random& random, std::vector<Row>& rows) { alike_rounds(random, rows, 0.6); };
    lines.decided(alike, true, most);
  }
  lines.compared(with(world_of(10, 12, 0.03, 3), "each cell shifts by 3 % between runs",
                      [](SyntheticCell& cell) { cell.run_shift = 0.03; }),
                 0.05);
}

}  // namespace

bool calibrate_findings(int64_t trials, uint64_t seed) {
  FindingLines lines(trials, seed);
  add_changes(lines);
  add_processes(lines);
  add_starts(lines);
  add_verdicts(lines);
  fmt::print("\nnamed findings and verdicts\n\n");
  return lines.print();
}

}  // namespace assay
