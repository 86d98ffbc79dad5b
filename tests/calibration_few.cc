// Two equal arms of few processes: what one process of each decides, and the intervals that all
// strata's spread makes.
#include "calibration_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "analysis/analyze.h"
#include "analysis/rows/synthetic_bundle.h"
#include "calibration_lines.h"
#include "stats/samples/summary.h"

namespace assay {
namespace {

// Standard deviations are of the logarithm.
struct FewWorld {
  std::string name;
  int64_t processes = 2;
  int strata = 10;
  double of_cell = 0.05;   // between a cell's processes, each cell's own
  double of_process = 0;   // between an arm's processes, the same in all cells
  double wild_factor = 1;  // on of_cell, of the wild cells
  int wild_every = 5;      // one in so many cells is wild
  double uneven = 0;       // of the cells' own of_cell
};

Bundle run_in(const FewWorld& world, Random random) {
  SyntheticBundle bundle(random());
  for (int stratum = 0; stratum < world.strata; ++stratum) {
    const double own = world.of_cell * (stratum % world.wild_every == 0 ? world.wild_factor : 1) *
                       std::exp(world.uneven * standard_normal(random));
    for (const std::string arm : {"eager", "static"}) {
      SyntheticCell cell{.arm = arm, .scenario = fmt::format("s{}", stratum)};
      cell.noise = 0.005;
      cell.processes = world.processes;
      cell.repetitions = 4 * world.processes;
      cell.process_shift = own;
      bundle.add(cell);
    }
  }
  Bundle run = bundle.build();
  std::map<std::pair<std::string, int64_t>, double> shifts;
  for (Row& row : run.rows) {
    const auto [shift, is_new] = shifts.try_emplace({row.arm, row.process.value_or(0)}, 1);
    if (is_new) shift->second = std::exp(world.of_process * standard_normal(random));
    *row.latency_ms *= shift->second;
  }
  return run;
}

bool some_cell_differs(const std::vector<Contrast>& contrasts) {
  return std::ranges::any_of(contrasts, [](const Contrast& contrast) {
    return contrast.verdict == Verdict::kFaster || contrast.verdict == Verdict::kSlower;
  });
}

// The first contrast with an interval, of cells as wild as asked; null: there is none.
const Contrast* with_interval(const Findings& findings, bool wild) {
  for (const Contrast& contrast : findings.contrasts) {
    const std::string& name = findings.strata[*contrast.stratum].scenario;
    const bool is_wild = (name.back() - '0') % 5 == 0;
    if (contrast.ratio_interval && is_wild == wild) return &contrast;
  }
  return nullptr;
}

class FewProcesses {
 public:
  FewProcesses(int64_t trials, uint64_t seed) : lines_(trials, seed, 10) {
    options_.resamples = 200;
  }

  void alarms(const FewWorld& world) {
    const auto found = lines_.count(1, [&](Random random, int64_t* flags) {
      flags[0] = some_cell_differs(analyze(run_in(world, random), options_, nullptr)->contrasts);
    });
    lines_.add("one of the cells differs", world.name, found[0], 0, 0.05);
  }

  // Cells whose interval doesn't stand show a range, which promises nothing: another run is drawn.
  void coverage(const FewWorld& world, bool wild, double least) {
    const auto found = lines_.count(1, [&](Random random, int64_t* flags) {
      for (int run = 0; run < 20; ++run) {
        const Findings findings = *analyze(run_in(world, random), options_, nullptr);
        const Contrast* contrast = with_interval(findings, wild);
        if (contrast == nullptr) continue;
        flags[0] = contrast->ratio_interval->contains(1);
        return;
      }
      flags[0] = 1;
    });
    lines_.add(wild ? "an interval of a wild cell covers" : "an interval covers", world.name,
               found[0], least, 1);
  }

  // Median half widths of the middle cell's interval, in percent, of this many strata.
  void width(int64_t processes) {
    fmt::print("| {} |", processes);
    for (const int strata : {1, 5, 10}) {
      std::vector<double> widths;
      int64_t ranges = 0;
      Random random(static_cast<uint64_t>(processes * 100 + strata));
      for (int run = 0; run < 400; ++run) {
        const FewWorld world{.name = "", .processes = processes, .strata = strata};
        const Findings findings = *analyze(run_in(world, Random(random())), options_, nullptr);
        const Contrast& contrast = findings.contrasts[findings.contrasts.size() / 2];
        const auto& interval = contrast.ratio_interval;
        ranges += !interval;
        if (interval) widths.push_back(std::log(interval->high / interval->low) / 2);
      }
      const std::string width =
          widths.empty() ? "-"
                         : fmt::format("{:.1f} %", *stats::median(stats::sorted(widths)) * 100);
      fmt::print(" {}, {:.0f} % ranges |", width, static_cast<double>(ranges) / 4);
    }
    fmt::print("\n");
  }

  bool shows() const { return lines_.shows(); }
  bool print() const { return lines_.print(); }

 private:
  CalibrationLines lines_;
  AnalysisOptions options_;
};

}  // namespace

bool calibrate_few(int64_t trials, uint64_t seed) {
  FewProcesses few(trials, seed);
  for (const double spread : {0.03, 0.3}) {
    few.alarms({.name = fmt::format("one process an arm; processes differ by {:.0f} %, one cell",
                                    spread * 100),
                .processes = 1,
                .strata = 1,
                .of_cell = spread});
  }
  for (const int64_t processes : {2, 3, 5}) {
    const auto named = [&](std::string_view rest) {
      return fmt::format("{} processes; {}", processes, rest);
    };
    const FewWorld same{.name = named("ten cells, each differs by 5 %"), .processes = processes};
    FewWorld shared = same;
    shared.name = named("ten cells, a process differs by 5 % in all of them");
    shared.of_cell = 0;
    shared.of_process = 0.05;
    FewWorld half = same;
    half.name = named("ten cells, half of the variance is of all of them");
    half.of_cell = half.of_process = 0.05 / std::sqrt(2.0);
    FewWorld uneven = same;
    uneven.name = named("ten cells whose spread differs by a half");
    uneven.uneven = 0.5;
    FewWorld wild = same;
    wild.name = named("ten cells, one in five spreads eight times as much");
    wild.wild_factor = 8;
    for (const FewWorld& world : {same, shared, half, uneven, wild}) few.alarms(world);
    if (processes == 2) {
      FewWorld one = wild;
      one.name = named("ten cells, one spreads eight times as much");
      one.wild_every = 10;
      few.alarms(one);
    }
    few.coverage(same, false, 0.93);
    if (processes > 3) few.coverage(shared, false, 0.93);
    few.coverage(half, false, 0.93);
    few.coverage(uneven, false, 0.93);
    few.coverage(wild, false, 0.93);
    if (processes > 3) few.coverage(wild, true, 0.88);
  }
  if (few.shows()) {
    fmt::print(
        "\nhalf width of a ratio's interval, of 400 runs; processes differ by 5 %\n\n"
        "| processes | one cell | five cells | ten cells |\n|---:|---|---|---|\n");
    for (const int64_t processes : {2, 3, 4, 5, 10}) few.width(processes);
  }
  fmt::print("\ntwo equal arms of few processes\n\n");
  return few.print();
}

}  // namespace assay
