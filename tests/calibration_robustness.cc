// Verdicts and bands across bundles, by simulation.
#include "calibration_parts.h"

#include <cmath>
#include <string>
#include <vector>

#include "analysis/analyze.h"
#include "analysis/rows/synthetic_bundle.h"
#include "base/text/counts.h"
#include "calibration_lines.h"
#include "gates/claim_answer.h"
#include "portability/portability.h"
#include "stats/samples/summary.h"

namespace assay {
namespace {

const double kClaimed = std::log(0.8);  // a fifth faster

// The points at which a claim is looked at: `points` beside the reference, one of which retains
// `share`, the others `rest`; log ratios of processes differ by `noise`.
struct ClaimWorld {
  double share = 1;
  double rest = 1;
  int points = 3;
  int processes = 10;
  double noise = 0.02;
};

PerturbationPoint point_with(double share, const ClaimWorld& world, Random& random) {
  std::vector<double> values;
  for (int i = 0; i < world.processes; ++i) {
    values.push_back(kClaimed * share + world.noise * standard_normal(random));
  }
  Estimate of{.log_ratio = *stats::mean(values), .unit = ContrastUnit::kProcesses, .paired = true};
  if (const auto moments = stats::moments(values)) of.error = stats::error_of_mean(*moments);
  return {.name = "point", .ratio = of};
}

RobustnessIndex index_in(const ClaimWorld& world, Random& random) {
  std::vector<PerturbationPoint> points = {point_with(1, world, random)};
  for (int i = 0; i < world.points; ++i) {
    points.push_back(point_with(i == 0 ? world.share : world.rest, world, random));
  }
  return robustness_index("stack", points);
}

class BandSimulation : public CalibrationLines {
 public:
  BandSimulation(int64_t trials, uint64_t seed) : CalibrationLines(trials, seed, 5) {}

  void bands(const ClaimWorld& world) {
    const double truth = std::min(world.share, world.rest);
    const RobustnessBand band = band_of_index(truth);
    const auto found = count(4, [&](Random random, int64_t* flags) {
      const RobustnessIndex index = index_in(world, random);
      // Too few rows show the claim: no band is given, and so none wrongly.
      flags[3] = index.band == RobustnessBand::kInvalid;
      if (flags[3]) return;
      flags[1] = index.band == RobustnessBand::kUndecided;
      flags[0] = !flags[1] && index.band != band;
      // Without an interval it is undecided.
      flags[2] = index.interval && !index.interval->contains(truth);
    });
    const std::string text =
        fmt::format("{} ({:g}), {} at {:g}; {} processes, {:g} % noise", robustness_band_name(band),
                    truth, world.points - 1, world.rest, world.processes, world.noise * 100);
    add("robustness: another band", text, found[0], 0, 0.05);
    add("robustness: undecided", text, found[1], 0, 1);
    add("robustness: the interval misses", text, found[2], 0, 0.07);
    add("robustness: invalid", text, found[3], 0, world.processes > 2 ? 0.05 : 1);
  }

  // A claim of a fifth in a bundle and its rerun, along the axis `process`: nothing differs but
  // what a start makes of each process.
  void processes(int64_t processes, int64_t rows, double noise, double shift) {
    const auto found = count(2, [&](Random random, int64_t* flags) {
      std::vector<Regime> regimes;
      for (const char* folder : {"a", "b"}) {
        SyntheticBundle bundle(random());
        for (const std::string arm : {"eager", "static"}) {
          SyntheticCell cell{.arm = arm};
          cell.mean_ms = arm == "static" ? 8 : 10;
          cell.noise = noise;
          cell.processes = processes;
          cell.repetitions = processes * rows;
          cell.process_shift = shift;
          bundle.add(cell);
        }
        bundle.raw().folder = folder;
        regimes.push_back(*condense(bundle.build(), {}));
      }
      PortabilityRequest request;
      request.claim = *parse_claim("static faster than eager in prefill");
      const Portability judged = *judge_portability(std::move(regimes), request);
      for (const RobustnessIndex& index : judged.claims.at(0).indexes) {
        if (index.axis != "process" || index.band == RobustnessBand::kInvalid) continue;
        flags[1] = index.band == RobustnessBand::kUndecided;
        flags[0] = !flags[1] && index.band != RobustnessBand::kRobust;
      }
    });
    const std::string text = fmt::format(
        "axis process, nothing differs; {} processes of {} rows, {:g} % noise{}", processes, rows,
        noise * 100, shift > 0 ? fmt::format(", processes differ by {:g} %", shift * 100) : "");
    add("robustness: another band", text, found[0], 0, 0.05);
    add("robustness: undecided", text, found[1], 0, 1);
  }

  // Ten prompt lengths in two bundles: an arm takes `first` of the baseline's time in one and
  // `second` in the other, and all of the second one's take `slower` times as long.
  void verdicts(const std::string& what, PortabilityVerdict verdict, double first, double second,
                double slower, double least, double most) {
    const auto found = count(1, [&](Random random, int64_t* flags) {
      std::vector<Regime> regimes;
      for (const auto& [ratio, times] : {std::pair{first, 1.0}, {second, slower}}) {
        SyntheticBundle bundle(random());
        for (int stratum = 0; stratum < 10; ++stratum) {
          for (const std::string arm : {"eager", "static"}) {
            SyntheticCell cell{.arm = arm, .scenario = fmt::format("s{}", stratum)};
            cell.mean_ms = 10 * times * (arm == "static" ? ratio : 1);
            cell.noise = 0.03;
            cell.processes = 10;
            cell.process_shift = 0.01;
            const std::string id = bundle.add(cell);
            for (Row& row : bundle.raw().rows) {
              if (row.cell_id == id && arm == "static") row.cache = "static";
            }
          }
        }
        regimes.push_back(*condense(bundle.build(), {}));
      }
      PortabilityRequest request;
      const Portability judged = *judge_portability(std::move(regimes), request);
      for (const ConditionVerdict& of : judged.verdicts) {
        if (of.verdict == verdict && judged.conditions[of.condition].arm() == "static") {
          flags[0] = 1;
        }
      }
    });
    add(fmt::format("portability: {} of ten", portability_verdict_name(verdict)), what, found[0],
        least, most);
  }

  // A claim about a phase whose third stratum takes `third` of the baseline's time, the others 0.9.
  void claim(double third, double least, double most) {
    const SpeedClaim about = *parse_claim("static faster than eager in prefill");
    const auto found = count(1, [&](Random random, int64_t* flags) {
      SyntheticBundle bundle(random());
      for (const auto& [scenario, ratio] : {std::pair{"s0", 0.9}, {"s1", 0.9}, {"s2", third}}) {
        for (const std::string arm : {"eager", "static"}) {
          SyntheticCell cell{.arm = arm, .scenario = scenario};
          cell.mean_ms = arm == "static" ? 10 * ratio : 10;
          cell.processes = 10;
          cell.process_shift = 0.05;
          bundle.add(cell);
        }
      }
      AnalysisOptions options;
      options.resamples = 500;
      const Findings findings = *analyze(bundle.build(), options, nullptr);
      flags[0] = answer_claim(about, StratumFindings(findings)).verdict == GateVerdict::kPass;
    });
    add("gate: \"faster in prefill\" passes",
        fmt::format("three strata at 0.9, 0.9 and {:g} of the time; processes differ by 5 %",
                    third),
        found[0], least, most);
  }

  // So many runs of either commit, each of which takes its own 3 % more or less; the second commit
  // `slower` times as long.
  void blame(int64_t runs, double slower, double least, double most) {
    const auto found = count(1, [&](Random random, int64_t* flags) {
      std::vector<Regime> regimes;
      for (int64_t run = 0; run < 2 * runs; ++run) {
        const bool is_second = run % 2 == 1;
        const double shift = std::exp(0.03 * standard_normal(random)) * (is_second ? slower : 1);
        SyntheticBundle bundle(random());
        for (const char* scenario : {"s0", "s1"}) {
          SyntheticCell cell{.arm = "eager", .scenario = scenario};
          cell.mean_ms = 10 * shift;
          cell.processes = 10;
          cell.process_shift = 0.01;
          bundle.add(cell);
        }
        bundle.raw().manifest["identity"]["code_sha"] = is_second ? "def" : "abc";
        bundle.raw().folder = fmt::format("run{}", run);
        regimes.push_back(*condense(bundle.build(), {}));
      }
      PortabilityRequest request;
      const Portability judged = *judge_portability(std::move(regimes), request);
      flags[0] = std::ranges::any_of(judged.attributions, &Attribution::is_responsible);
    });
    add("portability: the commit is responsible",
        fmt::format("{} of each commit, which differ by 3 %; the second {:g} times as slow",
                    counted(runs, "run"), slower),
        found[0], least, most);
  }
};

}  // namespace

bool calibrate_robustness(int64_t trials, uint64_t seed) {
  BandSimulation simulation(trials, seed);
  for (const double share : {1.0, 0.9, 0.8, 0.65, 0.5, 0.25, 0.0, -0.3}) {
    simulation.bands({.share = share});
  }
  simulation.bands({.share = 1, .points = 9});
  simulation.bands({.share = 0.65, .rest = 0.65, .points = 4});
  for (const double share : {1.0, 0.65, 0.25}) {
    simulation.bands({.share = share, .processes = 5});
    simulation.bands({.share = share, .processes = 5, .noise = 0.05});
    simulation.bands({.share = share, .processes = 2});
  }
  for (const auto& [processes, rows] : {std::pair{5, 6}, {10, 3}}) {
    simulation.processes(processes, rows, 0.05, 0);
    simulation.processes(processes, rows, 0.02, 0.03);
  }
  using enum PortabilityVerdict;
  simulation.verdicts("arms alike in both", kDirectionFlip, 1, 1, 1, 0, 0.05);
  simulation.verdicts("5 % slower, at the margin", kSimilar, 0.8, 0.8, 1.05, 0, 0.05);
  simulation.verdicts("same program", kShift, 0.8, 0.8, 1, 0, 0.05);
  simulation.verdicts("0.9 of the time in one, 1.1 in the other", kDirectionFlip, 0.9, 1.1, 1, 0.95,
                      1);
  simulation.claim(1.05, 0, 0.05);
  simulation.claim(0.8, 0.8, 1);
  for (const int64_t runs : {1, 2, 3}) simulation.blame(runs, 1, 0, 0.05);
  simulation.blame(3, 1.3, 0.8, 1);
  return simulation.print();
}

}  // namespace assay
