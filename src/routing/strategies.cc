// Strategies over a trace.
#include "routing/strategies.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <tuple>

#include "base/text/text.h"

namespace assay {
namespace {

double warm_mean(const ReplayCell& cell) {
  double sum = 0;
  for (const ReplayRow& row : cell.warm) sum += row.ms;
  return sum / static_cast<double>(cell.warm.size());
}

// Arm that a strategy takes for one phase of a request, with the rule that says so.
struct Wish {
  int32_t arm = -1;
  int32_t fallback = -1;
  int32_t rule = -1;
  std::optional<int64_t> padded;  // prompt tokens to serve it as
};
using Wishes = std::function<Wish(Phase, const TraceRequest&)>;

class TracePlanner {
 public:
  TracePlanner(const ReplayData& data, const Route& route, const std::string& model,
               std::span<const std::string> arms)
      : data_(data), route_(route), model_(model), arms_(arms) {
    plan_.phases = data.phases();
    find_arms();
  }

  void add_requests(std::span<const TraceRequest> trace) {
    std::map<std::string, int64_t> outside;
    for (const TraceRequest& request : trace) {
      std::string why;
      for (const Phase phase : plan_.phases) {
        if (skips(phase, request)) continue;
        const ReplayPlace& place = plan_.places[static_cast<size_t>(place_of(phase, request))];
        if (place.corners.empty() && why.empty()) why = place.outside;
      }
      if (why.empty()) {
        plan_.requests.push_back(request);
      } else {
        ++outside[why];
      }
    }
    plan_.outside.assign(outside.begin(), outside.end());
    for (const TraceRequest& request : plan_.requests) {
      for (const Phase phase : plan_.phases) {
        plan_.own_places.push_back(skips(phase, request) ? -1 : place_of(phase, request));
      }
    }
  }

  PlannedTrace finish() {
    add("eager", fmt::format("{} throughout", name(safe_)), safe_ < 0 ? "no arm is safe" : "",
        [&](Phase, const TraceRequest&) {
          return Wish{safe_, -1, -1, {}};
        });
    const std::string none = compiled_ < 0 ? "no arm is proven compiled anywhere" : "";
    add("compiled", fmt::format("{} throughout", name(compiled_)), none,
        [&](Phase, const TraceRequest&) {
          return Wish{compiled_, -1, -1, {}};
        });
    add_guarded();
    add_split(none);
    add_batch(none);
    add("padded", fmt::format("{}, prompts padded to measured lengths", name(compiled_)), none,
        [&](Phase phase, const TraceRequest& request) {
          return Wish{compiled_, -1, -1, data_.bucket(phase, request)};
        });
    add("policy", "by shape", "",
        [&](Phase phase, const TraceRequest& request) { return by_policy(phase, request); });
    plan_.shapes = shapes_.size();
    return std::move(plan_);
  }

  bool any_inside() const { return !plan_.requests.empty(); }
  const PlannedTrace& plan() const { return plan_; }

 private:
  std::string name(int32_t arm) const {
    return arm < 0 ? "no arm" : arms_[static_cast<size_t>(arm)];
  }

  static bool skips(Phase phase, const TraceRequest& request) {
    return phase == Phase::kKvDecode && request.new_tokens == 0;
  }

  int32_t arm_index(const std::string& arm) const {
    const auto at = std::ranges::find(arms_, arm);
    return at == arms_.end() ? -1 : static_cast<int32_t>(at - arms_.begin());
  }

  const StratumChoice& choice(size_t stratum) const { return route_.choices[stratum]; }

  // Standing of an arm on the strata of some phases.
  struct Standing {
    int64_t allowed = 0;   // strata on which the policy may take it
    int64_t serves = 0;    // and any strategy
    double log_ratio = 0;  // ln of its mean time beside the safe arm's, over the latter

    bool before(const Standing& other) const {
      if (allowed != other.allowed) return allowed > other.allowed;
      if (serves != other.serves) return serves > other.serves;
      return log_ratio < other.log_ratio;
    }
  };

  Standing standing(int32_t arm, std::span<const Phase> phases) const {
    Standing found;
    double sum = 0;
    for (const Phase phase : phases) {
      for (const size_t stratum : data_.strata(phase)) {
        const ReplayCell& cell = data_.cell(stratum, static_cast<size_t>(arm));
        if (!cell.serves) continue;
        ++found.serves;
        if (cell.allowed) ++found.allowed;
        const int32_t safe = arm_index(choice(stratum).safe);
        if (safe < 0) continue;
        const ReplayCell& beside = data_.cell(stratum, static_cast<size_t>(safe));
        if (beside.allowed) sum += std::log(warm_mean(cell) / warm_mean(beside));
      }
    }
    if (found.serves > 0) found.log_ratio = sum / static_cast<double>(found.serves);
    return found;
  }

  // The arm that may be chosen, proven compiled, on the most strata of these phases; of several the
  // one that serves on the most, then the fastest.
  int32_t compiled_arm(std::span<const Phase> phases) const {
    int32_t best = -1;
    Standing standing_of_best;
    for (int32_t arm = 0; arm < static_cast<int32_t>(arms_.size()); ++arm) {
      if (!route_.compiled_arms.contains(arms_[static_cast<size_t>(arm)])) continue;
      const Standing found = standing(arm, phases);
      if (found.serves == 0) continue;
      if (best >= 0 && !found.before(standing_of_best)) continue;
      best = arm;
      standing_of_best = found;
    }
    return best;
  }

  void find_arms() {
    std::map<std::string, int64_t> safe;
    for (const Phase phase : plan_.phases) {
      for (const size_t stratum : data_.strata(phase)) {
        if (!choice(stratum).safe.empty()) ++safe[choice(stratum).safe];
      }
    }
    const auto most = std::ranges::max_element(safe, {}, [](const auto& of) { return of.second; });
    safe_ = most == safe.end() ? -1 : arm_index(most->first);
    compiled_ = compiled_arm(plan_.phases);
  }

  int32_t place_of(Phase phase, const TraceRequest& request) {
    const auto [at, fresh] = places_.try_emplace(
        {phase, request.batch, decodes(phase) ? request.new_tokens : 0, request.prompt_tokens},
        static_cast<int32_t>(plan_.places.size()));
    if (fresh) plan_.places.push_back(data_.place(phase, request));
    return at->second;
  }

  int32_t shape_of(Phase phase, const TraceRequest& request) {
    return shapes_
        .try_emplace(
            {phase, request.batch, decodes(phase) ? request.new_tokens : 0, request.prompt_tokens},
            static_cast<int32_t>(shapes_.size()))
        .first->second;
  }

  // `may_lose`: arms that lost rows serve too.
  PlannedCall call_of(const Wish& wish, Phase phase, TraceRequest request, bool may_lose) {
    if (wish.padded) request.prompt_tokens = *wish.padded;
    PlannedCall call{wish.arm, wish.fallback, wish.rule, place_of(phase, request),
                     shape_of(phase, request)};
    const ReplayPlace& place = plan_.places[static_cast<size_t>(call.place)];
    const auto usable = [&](int32_t arm) {
      if (arm < 0) return false;
      const auto index = static_cast<size_t>(arm);
      return may_lose ? data_.serves(place, index) : data_.allowed(place, index);
    };
    if (!usable(call.fallback)) call.fallback = -1;
    if (!usable(call.arm)) call.arm = call.fallback;
    return call;
  }

  void add(const std::string& strategy, const std::string& takes, const std::string& unavailable,
           const Wishes& wishes) {
    PlannedStrategy planned{strategy, takes, unavailable, {}, {}, ""};
    const bool may_lose = strategy != "policy";
    if (unavailable.empty()) {
      for (const TraceRequest& request : plan_.requests) {
        for (const Phase phase : plan_.phases) {
          planned.calls.push_back(skips(phase, request)
                                      ? PlannedCall{}
                                      : call_of(wishes(phase, request), phase, request, may_lose));
        }
      }
    }
    plan_.strategies.push_back(std::move(planned));
  }

  // The compiled arm under the policy's trigger for lost rows, if it lost any: it shows the
  // trigger's worth.
  void add_guarded() {
    if (compiled_ < 0 || safe_ < 0 || compiled_ == safe_) return;
    bool lost = false;
    for (const Phase phase : plan_.phases) {
      for (const size_t stratum : data_.strata(phase)) {
        const ReplayCell& cell = data_.cell(stratum, static_cast<size_t>(compiled_));
        lost = lost || (cell.serves && !cell.allowed);
      }
    }
    if (!lost) return;
    add("guarded", fmt::format("{} until it loses a row, then {}", name(compiled_), name(safe_)),
        "", [&](Phase, const TraceRequest&) {
          return Wish{compiled_, safe_, -1, {}};
        });
    plan_.strategies.back().fallback = name(safe_);
    plan_.strategies.back().triggers = {{.kind = TriggerKind::kLostRow,
                                         .allowed = 0,
                                         .window = 0,
                                         .limit_ms = {},
                                         .source = "the policy's own"}};
  }

  void add_split(const std::string& none) {
    const bool apart = plan_.phases.size() == 2;
    const Phase prefill[] = {Phase::kPrefill};
    const int32_t in_prefill = apart ? compiled_arm(prefill) : -1;
    std::string why = none;
    if (!apart) why = "prefill and kv_decode weren't both measured";
    if (apart && in_prefill < 0) why = "no arm is proven compiled in prefill";
    if (why.empty() && safe_ < 0) why = "no arm is safe";
    add("split", fmt::format("{} in prefill, {} in decode", name(in_prefill), name(safe_)), why,
        [&](Phase phase, const TraceRequest&) {
          return Wish{phase == Phase::kPrefill ? in_prefill : safe_, -1, -1, {}};
        });
  }

  // The smallest batch but one from which on the compiled arm's mean is below the safe arm's on
  // every stratum.
  void add_batch(const std::string& none) {
    std::map<int64_t, bool> faster;
    for (const Phase phase : plan_.phases) {
      for (const size_t stratum : data_.strata(phase)) {
        bool& all = faster.try_emplace(route_.strata[stratum].batch, true).first->second;
        if (compiled_ < 0 || safe_ < 0) continue;
        const ReplayCell& cell = data_.cell(stratum, static_cast<size_t>(compiled_));
        const ReplayCell& safe = data_.cell(stratum, static_cast<size_t>(safe_));
        all = all && cell.allowed && safe.allowed && warm_mean(cell) < warm_mean(safe);
      }
    }
    std::string why = none;
    if (faster.size() < 2) why = "one batch was measured";
    std::optional<int64_t> from;
    for (auto at = faster.rbegin(); at != faster.rend() && at->second; ++at) {
      if (std::next(at) != faster.rend()) from = at->first;
    }
    if (why.empty() && !from) why = "the compiled arm isn't faster on every stratum of any batch";
    const std::string where = from ? fmt::format("from batch {} on", *from) : "in large batches";
    add("batch", fmt::format("{} {}, {} below", name(compiled_), where, name(safe_)), why,
        [&, from](Phase, const TraceRequest& request) {
          return Wish{request.batch >= *from ? compiled_ : safe_, -1, -1, {}};
        });
  }

  Wish by_policy(Phase phase, const TraceRequest& request) const {
    const Policy& policy = route_.policy;
    const PolicyRule* rule =
        rule_of(policy, {model_, phase, request.batch, decodes(phase) ? request.new_tokens : 0,
                         request.prompt_tokens});
    if (rule == nullptr) return {arm_index(policy.fallback), -1, -1, {}};
    return {arm_index(rule->arm),
            arm_index(rule->fallback),
            static_cast<int32_t>(rule - policy.rules.data()),
            {}};
  }

  using Key = std::tuple<Phase, int64_t, int64_t, int64_t>;

  const ReplayData& data_;
  const Route& route_;
  const std::string& model_;
  std::span<const std::string> arms_;
  PlannedTrace plan_;
  int32_t safe_ = -1;
  int32_t compiled_ = -1;
  std::map<Key, int32_t> places_;
  std::map<Key, int32_t> shapes_;
};

}  // namespace

Result<PlannedTrace> plan_trace(const ReplayData& data, const Route& route,
                                const std::string& model, std::span<const std::string> arms,
                                std::span<const TraceRequest> trace) {
  TracePlanner planner(data, route, model, arms);
  planner.add_requests(trace);
  if (planner.any_inside()) return planner.finish();
  std::vector<std::string> reasons;
  for (const auto& [why, count] : planner.plan().outside) {
    reasons.push_back(fmt::format("{}: {}", why, counted(count, "request")));
  }
  return bad_input("trace: expected a request within what was measured of {}, found none ({})",
                   quoted_excerpt(model), join(reasons, "; "));
}

}  // namespace assay
