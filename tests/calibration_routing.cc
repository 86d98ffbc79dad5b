// Policies and replays, by simulation.
#include "calibration_parts.h"

#include <algorithm>
#include <string>
#include <vector>

#include "analysis/rows/synthetic_bundle.h"
#include "calibration_lines.h"
#include "routing/route.h"
#include "routing/simulate.h"
#include "routing/triggers.h"

namespace assay {
namespace {

// Two arms on three prompt lengths; compiled takes `share` of eager's time.
struct RoutingWorld {
  double share = 0.7;
  int64_t processes = 10;
  double process_shift = 0.02;
  double noise = 0.05;
};

Bundle study_in(const RoutingWorld& world, uint64_t seed) {
  SyntheticBundle bundle(seed);
  for (const int64_t length : {10, 30, 80}) {
    for (const bool compiled : {false, true}) {
      SyntheticCell cell{.arm = compiled ? "static" : "eager",
                         .scenario = fmt::format("prompt_{}", length),
                         .prompt_tokens = length,
                         .mean_ms = compiled ? 10 * world.share : 10};
      cell.noise = world.noise;
      cell.processes = world.processes;
      cell.process_shift = world.process_shift;
      cell.repetitions = 4 * world.processes;
      if (compiled) {
        bundle.add_compiled(cell, "false");
      } else {
        bundle.add(cell);
      }
    }
  }
  return bundle.build();
}

std::string text_of(const RoutingWorld& world) {
  return fmt::format("compiled takes {:g} of eager's time; {} processes", world.share,
                     world.processes);
}

Route routed(const RoutingWorld& world, uint64_t seed, bool with_trace) {
  RouteRequest request;
  request.analysis.resamples = 500;
  request.analysis.seed = seed;
  if (with_trace) {
    std::vector<TraceRequest> trace;
    for (int64_t i = 0; i < 150; ++i) {
      trace.push_back({static_cast<double>(i), std::vector<int64_t>{10, 20, 80}[i % 3], 0, 1});
    }
    request.trace = TraceToReplay{"trace", std::move(trace), "", 100};
  }
  return judge_route(study_in(world, seed), request, nullptr).value();
}

const SimulatedStrategy& replayed(const Route& route, const std::string& name) {
  return *std::ranges::find(route.simulation->strategies, name, &SimulatedStrategy::name);
}

class RoutingSimulation : public CalibrationLines {
 public:
  RoutingSimulation(int64_t trials, uint64_t seed) : CalibrationLines(trials, seed, 6) {}

  // Times without noise give the truth of a median: 10 ms, and of regret 1 / share - 1.
  void intervals(const RoutingWorld& world) {
    const auto found = count(4, [&](Random random, int64_t* flags) {
      const Route route = routed(world, random(), true);
      const SimulatedStrategy& eager = replayed(route, "eager");
      flags[0] = eager.p50_ms->interval->contains(10);
      flags[1] = eager.regret->interval->contains(1 / world.share - 1);
      flags[2] = !route.simulation->triggers.empty();
      flags[3] = route.validation->interval && (route.validation->interval->low > 1e-9 ||
                                                route.validation->interval->high < -1e-9);
    });
    add("route: the interval of a replayed p50 covers", text_of(world), found[0], 0.93, 1);
    add("route: the interval of regret covers", text_of(world), found[1], 0.93, 1);
    add("route: a trigger fires in some replay", "requests like the rows; " + text_of(world),
        found[2], 0, 1);
    add("route: the optimism's interval leaves out 0",
        "both halves choose alike; " + text_of(world), found[3], 0, 0.05);
  }

  void wrong_choices(const RoutingWorld& world, double most) {
    const auto found = count(1, [&](Random random, int64_t* flags) {
      const Route route = routed(world, random(), false);
      for (const PolicyRule& rule : route.policy.rules) {
        if (rule.arm == "static") flags[0] = 1;
      }
    });
    add("route: the compiled arm is taken somewhere", text_of(world), found[0], 0, most);
  }

  // Windows of requests that are exchangeable with the measured rows.
  void false_alarms(int64_t rows) {
    const int64_t allowed = allowed_events(0, rows, kTriggerWindow);
    const auto found = count(1, [&](Random random, int64_t* flags) {
      double largest = 0;
      for (int64_t i = 0; i < rows; ++i) largest = std::max(largest, random.uniform());
      int64_t above = 0;
      for (int64_t i = 0; i < kTriggerWindow; ++i) above += random.uniform() > largest ? 1 : 0;
      flags[0] = above > allowed;
    });
    add("route: a window fires p99_ms", fmt::format("{} measured rows, exchangeable", rows),
        found[0], 0, kFalseAlarm);
  }
};

}  // namespace

bool calibrate_routing(int64_t trials, uint64_t seed) {
  RoutingSimulation simulation(trials, seed);
  for (const int64_t processes : {5, 10, 20}) simulation.intervals({.processes = processes});
  simulation.wrong_choices({.share = 1}, 0.05);
  simulation.wrong_choices({.share = 1.1}, 0.05);
  for (const int64_t rows : {30, 100, 500}) simulation.false_alarms(rows);
  return simulation.print();
}

}  // namespace assay
