// Two runs of programs whose processes die, and of programs that differ by less than the margin.
#include "calibration_parts.h"

#include <map>
#include <string>

#include "analysis/analyze.h"
#include "analysis/compare/compare.h"
#include "calibration_lines.h"
#include "calibration_worlds.h"

namespace assay {
namespace {

World quiet_invocations(int64_t processes, int64_t rows_each) {
  World world = world_of_shifts("", 0.03, 0.02, 0, processes);
  world.repetitions = processes * rows_each;
  return world;
}

// Lets each process die with this chance: in its first row or, `anywhere`, in one of its rows. The
// row is lost, and a new process, which may die too, measures what is left.
Bundle with_deaths(Bundle bundle, double chance, bool anywhere, Random random) {
  std::map<std::string, std::vector<Row*>> cells;
  for (Row& row : bundle.rows) cells[row.cell_id.str()].push_back(&row);
  for (auto& [cell, rows] : cells) {
    int64_t restarted = 0;
    size_t first = 0;  // of the rows of one process
    while (first < rows.size()) {
      const auto of = [&](size_t i) { return rows[i]->process.value_or(0); };
      const int64_t planned = of(first);
      size_t end = first;
      while (end < rows.size() && of(end) == planned) ++end;
      for (size_t i = first; i < end; ++i) rows[i]->process = planned + restarted;
      if (random.uniform() < chance) {
        const auto left = static_cast<double>(end - first);
        const size_t at = anywhere ? first + static_cast<size_t>(random.uniform() * left) : first;
        Row& lost = *rows[at];
        lost.status = RowStatus::kCrash;
        lost.error_class = "SIGSEGV";
        lost.latency_ms.reset();
        lost.tokens_per_s.reset();
        // Those behind it are still of the planned process until the next round of this loop.
        for (size_t i = at + 1; i < end; ++i) rows[i]->process = planned;
        ++restarted;
        first = at + 1;
      } else {
        first = end;
      }
    }
  }
  return bundle;
}

class LossLines : public CalibrationLines {
 public:
  LossLines(int64_t trials, uint64_t seed) : CalibrationLines(trials, seed, 8) {}

  void equal_programs_that_die(double chance) {
    const World world = quiet_invocations(10, 12);
    const auto found = count(1, [&](Random random, int64_t* flags) {
      const auto run = [&] {
        Random own(random());
        return with_deaths(run_of(world, 3, 1, Random(own())), chance, true, own);
      };
      const Bundle base = run();
      flags[0] = !compare(base, run(), {}, {})->failures(true).empty();
    });
    add("compare fails",
        fmt::format("same program, whose processes die at {:.0f} %; 3 % noise, 10 "
                    "processes of 12 rows, 6 cells",
                    chance * 100),
        found[0], 0, 0.05);
  }

  void rate_of_crashing_invocations(double chance) {
    const World world = quiet_invocations(5, 12);
    const auto found = count(1, [&](Random random, int64_t* flags) {
      const Bundle run = with_deaths(run_of(world, 1, 1, Random(random())), chance, false, random);
      AnalysisOptions options;
      options.resamples = 100;
      const Findings findings = *analyze(run, options, nullptr);
      for (const OutcomeCounts& outcome : findings.outcomes) {
        if (!outcome.stratum || outcome.arm != "static") continue;
        flags[0] = outcome.died_interval->contains(chance);
      }
    });
    add("interval of the share of dead processes covers",
        fmt::format("{:.0f} % of invocations crash at once; 5 of 12 samples", chance * 100),
        found[0], 0.93, 1);
  }

  void slower_and_crashing() {
    const World world = quiet_invocations(5, 12);
    const auto found = count(1, [&](Random random, int64_t* flags) {
      const Bundle base = run_of(world, 1, 1, Random(random()));
      const Bundle cand = with_deaths(run_of(world, 1, 1.2, Random(random())), 0.3, false, random);
      flags[0] = !compare(base, cand, {}, {})->failures(true).empty();
    });
    add("compare fails", "20 % slower, and 30 % of invocations crash; 5 of 12 samples", found[0],
        0.95, 1);
  }

  void within_the_margin(double factor) {
    World world = world_of_shifts("", 0.01, 0.005, 0, 10);
    const auto found = count(2, [&](Random random, int64_t* flags) {
      const Bundle base = run_of(world, 3, 1, Random(random()));
      const auto comparison = compare(base, run_of(world, 3, factor, Random(random())), {}, {});
      flags[0] = !comparison->failures(true).empty();
      for (const ComparedCell& cell : comparison->cells) {
        if (cell.verdict != Verdict::kEquivalent) continue;
        const stats::Interval& shown = *cell.ratio_interval;
        if (shown.high > 1.02 || shown.low < 1 / 1.02) flags[1] = 1;
      }
    });
    const std::string truth =
        fmt::format("{:.1f} % slower, margin 2 %; 1 % noise, processes differ by 0.5 %, 6 cells",
                    (factor - 1) * 100);
    add("compare fails", truth, found[0], 0, 0.05);
    add("compare: equivalent beyond its interval", truth, found[1], 0, 1e-9);
  }

  // The power of an alarm beyond the margin of 2 %.
  void beyond_the_margin(double factor, double least) {
    const World world = world_of_shifts("", 0.01, 0.005, 0, 10);
    const auto found = count(1, [&](Random random, int64_t* flags) {
      const Bundle base = run_of(world, 3, 1, Random(random()));
      const auto comparison = compare(base, run_of(world, 3, factor, Random(random())), {}, {});
      flags[0] = !comparison->failures(true).empty();
    });
    add("compare fails",
        fmt::format("{:.0f} % slower, margin 2 %; 1 % noise, processes differ by 0.5 %, 6 cells",
                    (factor - 1) * 100),
        found[0], least, 1);
  }
};

}  // namespace

bool calibrate_losses(int64_t trials, uint64_t seed) {
  LossLines lines(trials, seed);
  lines.equal_programs_that_die(0.1);
  lines.rate_of_crashing_invocations(0.3);
  lines.slower_and_crashing();
  lines.within_the_margin(1.0);
  lines.within_the_margin(1.015);
  lines.within_the_margin(1.02);
  lines.beyond_the_margin(1.05, 0.95);
  return lines.print();
}

}  // namespace assay
