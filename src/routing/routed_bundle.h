// Bundles made by code, for tests of routing: arms with chosen times on chosen prompt lengths.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "analysis/rows/synthetic_bundle.h"
#include "routing/route.h"

namespace assay {

struct RoutedArm {
  std::string name;
  bool compiled = false;
  // Milliseconds by prompt tokens.
  std::function<double(int64_t)> ms = [](int64_t) { return 10.0; };
};

struct RoutedStudy {
  std::vector<RoutedArm> arms;
  std::vector<int64_t> lengths = {10, 30, 80};
  std::vector<Phase> phases = {Phase::kPrefill};
  std::vector<int64_t> batches = {1};
  int64_t repetitions = 40;
  int64_t processes = 8;
  double noise = 0.01;
  double process_shift = 0.002;
  double spike_rate = 0;
  int64_t warmup = 1;
  double cold_factor = 1.5;
  std::string dynamic = "false";
  uint64_t seed = 1;
};

// Eager takes 10 ms; compiled takes `share` of it on every length.
inline RoutedStudy two_routed_arms(double share) {
  RoutedStudy study;
  study.arms = {{"eager", false}, {"fast", true, [=](int64_t) { return 10 * share; }}};
  return study;
}

// The study's bundle, into which a test puts a defect by cell.
class RoutedBundle {
 public:
  explicit RoutedBundle(const RoutedStudy& study) : made(study.seed) {
    Json& about = made.raw().manifest["study"];
    about["baseline"] = study.arms.front().name;
    about["arms"] = Json::array();
    for (const RoutedArm& arm : study.arms) about["arms"].push_back(arm.name);
    made.raw().folder = "routed";
    for (const Phase phase : study.phases) {
      for (const int64_t length : study.lengths) {
        for (const int64_t batch : study.batches) {
          for (const RoutedArm& arm : study.arms) add(study, phase, length, batch, arm);
        }
      }
    }
  }

  const std::string& cell(const std::string& arm, int64_t length, Phase phase = Phase::kPrefill,
                          int64_t batch = 1) const {
    return cells_.at({arm, length, phase, batch});
  }

  Route route(const RouteRequest& request = {}) {
    auto route = judge_route(made.build(), request, nullptr);
    EXPECT_TRUE(route) << route.error().message;
    return route ? *std::move(route) : Route();
  }

  SyntheticBundle made;

 private:
  void add(const RoutedStudy& study, Phase phase, int64_t length, int64_t batch,
           const RoutedArm& arm) {
    SyntheticCell cell{.arm = arm.name,
                       .phase = phase,
                       .scenario = fmt::format("prompt_{}", length),
                       .prompt_tokens = length,
                       .mean_ms = arm.ms(length) * static_cast<double>(batch)};
    cell.noise = study.noise;
    cell.repetitions = study.repetitions;
    cell.processes = study.processes;
    cell.process_shift = study.process_shift;
    cell.spike_rate = study.spike_rate;
    cell.warmup = study.warmup;
    cell.cold_factor = study.cold_factor;
    const std::string id = arm.compiled ? made.add_compiled(cell, study.dynamic) : made.add(cell);
    for (Row& row : made.raw().rows) {
      if (row.cell_id == id) row.batch = batch;
    }
    cells_[{arm.name, length, phase, batch}] = id;
  }

  std::map<std::tuple<std::string, int64_t, Phase, int64_t>, std::string> cells_;
};

// The rule that serves this request of the synthetic model; the test fails where there is none.
inline const PolicyRule& rule_at(const Route& route, int64_t length, int64_t batch = 1,
                                 Phase phase = Phase::kPrefill) {
  static const PolicyRule kNone;
  const RoutedShape shape{"gpt2-25m", phase, batch, decodes(phase) ? 64 : 0, length};
  const PolicyRule* rule = rule_of(route.policy, shape);
  EXPECT_NE(rule, nullptr) << length;
  return rule == nullptr ? kNone : *rule;
}

}  // namespace assay
