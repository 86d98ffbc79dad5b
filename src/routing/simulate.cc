// Replays of a trace.
#include "routing/simulate.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/findings/options.h"
#include "routing/drawn_rows.h"
#include "routing/trigger_watch.h"
#include "stats/distributions/distributions.h"
#include "stats/samples/summary.h"

namespace assay {
namespace {

struct ReplayFigures {
  double p50 = 0;
  double p95 = 0;
  double p99 = 0;
  double per_s = 0;
  double mean = 0;
  int64_t lost = 0;
  int64_t compilations = 0;
  bool any = false;
};

class Replay {
 public:
  Replay(const ReplayData& data, const Policy& policy, const PlannedTrace& plan, Random random)
      : data_(data), policy_(policy), plan_(plan), times_(data.units(), 0) {
    for (size_t i = 0; i < data.units(); ++i) ++times_[random.below(data.units())];
    quantiles_.resize(plan.own_places.size());
    for (double& u : quantiles_) u = random.uniform();
    luck_.resize(plan.own_places.size());
    for (double& u : luck_) u = random.uniform();
  }

  ReplayFigures serve(const PlannedStrategy& strategy) {
    met_.assign(plan_.shapes * data_.arms(), false);
    graphs_.clear();
    rules_.assign(policy_.rules.size(), {});
    guard_ = {};
    return queue([&](size_t call, Phase phase, ReplayFigures& figures) -> std::optional<double> {
      return take(strategy, call, phase, figures);
    });
  }

  ReplayFigures serve_best() {
    best_.clear();
    return queue([&](size_t call, Phase, ReplayFigures&) -> std::optional<double> {
      const int32_t place = plan_.own_places[call];
      if (place < 0) return 0.0;
      const int32_t arm = best_arm(place);
      if (arm < 0) return std::nullopt;
      return draw_warm(plan_.places[static_cast<size_t>(place)], arm, quantiles_[call]).ms;
    });
  }

  const std::vector<RuleState>& rules() const { return rules_; }
  const RuleState& guard() const { return guard_; }

 private:
  // Requests one after the other; `time` is of one phase of one, and absent where it is lost.
  template <typename Time>
  ReplayFigures queue(const Time& time) {
    ReplayFigures figures;
    std::vector<double> latencies;
    latencies.reserve(plan_.requests.size());
    double free_s = 0;
    double sum = 0;
    for (size_t i = 0; i < plan_.requests.size(); ++i) {
      double ms = 0;
      bool lost = false;
      for (size_t p = 0; p < plan_.phases.size() && !lost; ++p) {
        const auto of_phase = time(i * plan_.phases.size() + p, plan_.phases[p], figures);
        lost = !of_phase;
        ms += of_phase.value_or(0);
      }
      if (lost) {
        ++figures.lost;
        continue;
      }
      const double begin = std::max(free_s, plan_.requests[i].arrival_s);
      free_s = begin + ms / 1000;
      latencies.push_back((free_s - plan_.requests[i].arrival_s) * 1000);
      sum += latencies.back();
    }
    if (latencies.empty()) return figures;
    figures.any = true;
    std::ranges::sort(latencies);
    figures.p50 = *stats::quantile(latencies, 0.5);
    figures.p95 = *stats::quantile(latencies, 0.95);
    figures.p99 = *stats::quantile(latencies, 0.99);
    const auto served = static_cast<double>(latencies.size());
    figures.mean = sum / served;
    figures.per_s = served / std::max(1e-9, free_s - plan_.requests.front().arrival_s);
    return figures;
  }

  std::optional<double> take(const PlannedStrategy& strategy, size_t index, Phase phase,
                             ReplayFigures& figures) {
    const PlannedCall& call = strategy.calls[index];
    if (call.place < 0) return 0.0;  // a phase that the request lacks
    RuleState* state = nullptr;
    const std::vector<PolicyTrigger>* triggers = &strategy.triggers;
    if (call.rule >= 0) {
      state = &rules_[static_cast<size_t>(call.rule)];
      triggers = &policy_.rules[static_cast<size_t>(call.rule)].triggers;
    } else if (!strategy.triggers.empty()) {
      state = &guard_;
    }
    int32_t arm = call.arm;
    if (state != nullptr && state->fired) {
      arm = call.fallback;
      ++state->diverted;
    }
    if (arm < 0) return std::nullopt;
    CallEvents events = call_arm(call, phase, arm, quantiles_[index]);
    events.lost = luck_[index] < events.chance_of_loss;
    figures.compilations += events.met_shape || events.recompiled ? 1 : 0;
    if (state != nullptr && !state->fired && call.fallback >= 0) {
      watch_triggers(*triggers, events, *state);
    }
    if (events.lost) return std::nullopt;
    return events.ms;
  }

  CallEvents call_arm(const PlannedCall& call, Phase phase, int32_t arm, double u) {
    const ReplayPlace& place = plan_.places[static_cast<size_t>(call.place)];
    const ReplayArm& about = data_.arm(phase, static_cast<size_t>(arm));
    CallEvents events;
    int64_t& graphs = graphs_[{phase, arm}];
    const size_t key = static_cast<size_t>(call.shape) * data_.arms() + static_cast<size_t>(arm);
    const bool fresh = !met_[key];
    const bool specialises = about.specialising == Specialising::kEachShape ||
                             (about.specialising == Specialising::kOnce && graphs < 1) ||
                             (about.specialising == Specialising::kTwice && graphs < 2);
    if (fresh && specialises) {
      if (about.limit && graphs >= *about.limit) {
        events = draw(
            place, arm, u, [](const DrawnCell& cell) -> const auto& {
              return cell.fell_back.rows.empty() ? cell.warm : cell.fell_back;
            });
        events.recompiled = false;
        events.limit = events.ran_eager = true;
        return events;
      }
      met_[key] = true;
      ++graphs;
      events = draw(
          place, arm, u, [](const DrawnCell& cell) -> const auto& {
            return cell.first.rows.empty() ? cell.warm : cell.first;
          });
      events.recompiled = false;
      events.met_shape = true;
      return events;
    }
    return draw_warm(place, arm, u);
  }

  CallEvents draw_warm(const ReplayPlace& place, int32_t arm, double u) {
    return draw(
        place, arm, u, [](const DrawnCell& cell) -> const auto& { return cell.warm; });
  }

  // The corners' quantiles, weighted; the events of the heaviest corner's row count.
  template <typename Rows>
  CallEvents draw(const ReplayPlace& place, int32_t arm, double u, const Rows& rows) {
    CallEvents events;
    double heaviest = -1;
    for (const ReplayCorner& corner : place.corners) {
      const DrawnRows& drawn = rows(cell(corner.stratum, arm));
      const ReplayRow& row = at_quantile(drawn.rows, u);
      events.ms += corner.weight * row.ms;
      events.chance_of_loss += corner.weight * drawn.lost;
      if (corner.weight <= heaviest) continue;
      heaviest = corner.weight;
      events.recompiled = row.compiled;
    }
    return events;
  }

  const DrawnCell& cell(size_t stratum, int32_t arm) {
    const auto [at, fresh] = cells_.try_emplace({stratum, arm});
    if (!fresh) return at->second;
    at->second = drawn_cell(data_.cell(stratum, static_cast<size_t>(arm)), times_);
    return at->second;
  }

  int32_t best_arm(int32_t place_index) {
    const auto [at, fresh] = best_.try_emplace(place_index, -1);
    if (!fresh) return at->second;
    const ReplayPlace& place = plan_.places[static_cast<size_t>(place_index)];
    double least = 0;
    for (int32_t arm = 0; arm < static_cast<int32_t>(data_.arms()); ++arm) {
      if (!data_.allowed(place, static_cast<size_t>(arm))) continue;
      double mean = 0;
      for (const ReplayCorner& corner : place.corners) {
        mean += corner.weight * cell(corner.stratum, arm).mean_ms;
      }
      if (at->second >= 0 && mean >= least) continue;
      at->second = arm;
      least = mean;
    }
    return at->second;
  }

  const ReplayData& data_;
  const Policy& policy_;
  const PlannedTrace& plan_;
  std::vector<int> times_;         // each unit was drawn
  std::vector<double> quantiles_;  // by request and phase
  std::vector<double> luck_;       // likewise: a request is lost where it is below the chance of it
  std::map<std::pair<size_t, int32_t>, DrawnCell> cells_;
  std::vector<bool> met_;  // by shape, then arm
  std::map<std::pair<Phase, int32_t>, int64_t> graphs_;
  std::vector<RuleState> rules_;
  RuleState guard_;                  // of a strategy with triggers of its own
  std::map<int32_t, int32_t> best_;  // by place
};

struct ReplayResult {
  std::vector<ReplayFigures> strategies;
  ReplayFigures best;
  std::vector<RuleState> rules;   // of the policy
  std::vector<RuleState> guards;  // by strategy
};

// Mean and interval of a figure's values, which are positive.
SimulatedFigure figure_of(const std::vector<double>& values, size_t units) {
  SimulatedFigure figure;
  figure.mean = *stats::mean(values);
  if (units < 2 || values.size() < 2 || !(figure.mean > 0)) return figure;
  std::vector<double> logs;
  for (const double value : values) logs.push_back(std::log(std::max(value, 1e-12) / figure.mean));
  std::ranges::sort(logs);
  const double stretch = stretch_of_units(units);
  const double tail = (1 - kConfidence) / 2;
  const double low = std::min(0.0, *stats::quantile(logs, tail));
  const double high = std::max(0.0, *stats::quantile(logs, 1 - tail));
  figure.interval = stats::Interval{figure.mean * std::exp(stretch * low),
                                    figure.mean * std::exp(stretch * high)};
  return figure;
}

void add_figures(const std::vector<ReplayResult>& results, size_t s, size_t units,
                 SimulatedStrategy& of) {
  const auto of_replays = [&](auto&& value) {
    std::vector<double> values;
    for (const ReplayResult& result : results) values.push_back(value(result));
    return values;
  };
  of.lost = *stats::mean(of_replays(
      [&](const ReplayResult& result) { return static_cast<double>(result.strategies[s].lost); }));
  of.compilations = *stats::mean(of_replays([&](const ReplayResult& result) {
    return static_cast<double>(result.strategies[s].compilations);
  }));
  const bool any = std::ranges::all_of(
      results, [&](const ReplayResult& result) { return result.strategies[s].any; });
  if (!any) return;
  const auto figure = [&](double ReplayFigures::*member) {
    return figure_of(
        of_replays([&](const ReplayResult& result) { return result.strategies[s].*member; }),
        units);
  };
  of.p50_ms = figure(&ReplayFigures::p50);
  of.p95_ms = figure(&ReplayFigures::p95);
  of.p99_ms = figure(&ReplayFigures::p99);
  of.per_s = figure(&ReplayFigures::per_s);
  if (of.lost > 0) return;
  SimulatedFigure ratio = figure_of(of_replays([&](const ReplayResult& result) {
                                      return result.strategies[s].mean / result.best.mean;
                                    }),
                                    units);
  ratio.mean -= 1;
  if (ratio.interval)
    ratio.interval = stats::Interval{ratio.interval->low - 1, ratio.interval->high - 1};
  of.regret = ratio;
}

// Those of the policy's rules, in their order, then those of other strategies.
std::vector<SimulatedTrigger> fired_triggers(const std::vector<ReplayResult>& results,
                                             const Policy& policy, const PlannedTrace& plan) {
  std::map<std::pair<size_t, TriggerKind>, SimulatedTrigger> fired;
  const auto count = [&](size_t key, const RuleState& state, const SimulatedTrigger& about) {
    if (!state.fired) return;
    SimulatedTrigger& trigger = fired.try_emplace({key, *state.fired}, about).first->second;
    trigger.kind = *state.fired;
    ++trigger.fired;
    trigger.diverted += static_cast<double>(state.diverted);
  };
  for (const ReplayResult& result : results) {
    for (size_t rule = 0; rule < result.rules.size(); ++rule) {
      count(rule, result.rules[rule],
            {.strategy = "policy", .rule = rule, .fallback = policy.rules[rule].fallback});
    }
    for (size_t s = 0; s < result.guards.size(); ++s) {
      count(policy.rules.size() + s, result.guards[s],
            {.strategy = plan.strategies[s].name,
             .rule = {},
             .fallback = plan.strategies[s].fallback});
    }
  }
  std::vector<SimulatedTrigger> all;
  for (auto& [key, trigger] : fired) {
    trigger.diverted /= static_cast<double>(trigger.fired);
    all.push_back(trigger);
  }
  return all;
}

}  // namespace

double stretch_of_units(size_t units) {
  if (units < 2) return 1;
  const auto n = static_cast<double>(units);
  const double tail = (1 + kConfidence) / 2;
  const auto t = stats::student_t_quantile(tail, n - 1);
  const auto z = stats::normal_quantile(tail);
  return t && z ? std::sqrt(n / (n - 1)) * *t / *z : 1;
}

Simulation simulate(const ReplayData& data, const Policy& policy, const PlannedTrace& plan,
                    const SimulationOptions& options, ThreadPool* pool) {
  std::vector<ReplayResult> results(static_cast<size_t>(options.replays));
  const auto replay = [&](size_t r) {
    Replay one(data, policy, plan, Random(options.seed, r));
    ReplayResult& result = results[r];
    for (const PlannedStrategy& strategy : plan.strategies) {
      result.strategies.push_back(strategy.unavailable.empty() ? one.serve(strategy)
                                                               : ReplayFigures());
      if (strategy.name == "policy") result.rules = one.rules();
      result.guards.push_back(strategy.triggers.empty() ? RuleState() : one.guard());
    }
    result.best = one.serve_best();
  };
  if (pool == nullptr) {
    for (size_t r = 0; r < results.size(); ++r) replay(r);
  } else {
    pool->parallel_for(results.size(), 1, [&](size_t begin, size_t end) {
      for (size_t r = begin; r < end; ++r) replay(r);
    });
  }
  Simulation simulation;
  simulation.options = options;
  simulation.replayed = std::ssize(plan.requests);
  simulation.outside = plan.outside;
  simulation.phases = plan.phases;
  simulation.units = data.units();
  const double seconds = plan.requests.back().arrival_s - plan.requests.front().arrival_s;
  if (seconds > 0) {
    simulation.asked_per_s = static_cast<double>(plan.requests.size() - 1) / seconds;
  }
  for (size_t s = 0; s < plan.strategies.size(); ++s) {
    const PlannedStrategy& planned = plan.strategies[s];
    SimulatedStrategy& of = simulation.strategies.emplace_back();
    of.name = planned.name;
    of.takes = planned.takes;
    of.unavailable = planned.unavailable;
    if (of.unavailable.empty()) add_figures(results, s, data.units(), of);
  }
  simulation.triggers = fired_triggers(results, policy, plan);
  return simulation;
}

}  // namespace assay
