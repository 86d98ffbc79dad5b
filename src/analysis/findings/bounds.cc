// Bounds and orders of figures.
#include "analysis/findings/bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace assay {
namespace {

struct Bound {
  double low = 0;
  double high = std::numeric_limits<double>::infinity();
  bool above_low = false;  // low itself is out
  const char* expected = "a number of at least 0";

  bool has(double x) const { return x <= high && (above_low ? x > low : x >= low); }
};

constexpr Bound kNotNegative{};
constexpr Bound kPositive{.above_low = true, .expected = "a number above 0"};
constexpr Bound kShare{.high = 1, .expected = "a share from 0 to 1"};

const Bound* bound_of(std::string_view name) {
  static const std::unordered_map<std::string_view, const Bound*> kBounds = [] {
    std::unordered_map<std::string_view, const Bound*> bounds;
    for (const char* positive :
         {"ratio", "median_ratio", "p50_ratio", "n_effective", "batch", "crossover_size"}) {
      bounds[positive] = &kPositive;
    }
    for (const char* share :
         {"p", "p_holm", "interaction_p_holm", "vargha_delaney_a", "alpha", "power",
          "intraclass_correlation", "processes_p_holm", "failed_rate_interval"}) {
      bounds[share] = &kShare;
    }
    for (const char* count : {"attempted",
                              "failed",
                              "n",
                              "n_arm",
                              "n_baseline",
                              "units_arm",
                              "units_baseline",
                              "left_out",
                              "strata",
                              "members",
                              "rows",
                              "new_tokens",
                              "repetitions",
                              "warmup",
                              "processes",
                              "resamples",
                              "minimum_rows",
                              "energy_n",
                              "cold_n",
                              "slow",
                              "slow_recompiled",
                              "recompiled",
                              "ran_eager",
                              "beyond_fence",
                              "beyond_fence_recompiled",
                              "lost_strata",
                              "by_status",
                              "by_error_class",
                              "counters",
                              "stratum_verdicts",
                              "calls",
                              "total_ns",
                              "wall_ns",
                              "gpu_busy_ns",
                              "gpu_gap_ns",
                              "kernels_launched",
                              "distinct_kernels",
                              "launch_calls",
                              "copies",
                              "synchronizations",
                              "prompt_tokens",
                              "bytes_per_s",
                              "limit_bytes_per_s",
                              "tokens_per_s",
                              "joules_per_token",
                              "prepare_s",
                              "compile_s",
                              "parity_compile_s",
                              "margin",
                              "cold_factor",
                              "minimum_detectable_share",
                              "mean_ms",
                              "median_ms",
                              "sd_ms",
                              "min_ms",
                              "p50_ms",
                              "p90_ms",
                              "p95_ms",
                              "p99_ms",
                              "max_ms",
                              "high_ms",
                              "cold_median_ms",
                              "cold_max_ms",
                              "mean_with_cold_ms",
                              "high_without_recompiled_ms",
                              "ratio_interval",
                              "ratio_process_range",
                              "mean_process_range_ms",
                              "p50_ratio_interval",
                              "p50_ratio_process_range"}) {
      bounds[count] = &kNotNegative;
    }
    return bounds;
  }();
  const auto at = kBounds.find(name);
  return at == kBounds.end() ? nullptr : at->second;
}

// Two ends in one array.
bool is_range(std::string_view name) {
  return name.contains("interval") || name.contains("process_range") || name == "prompt_tokens" ||
         name == "minimum_detectable_share";
}

Fit check_number(const Json& value, const Bound& bound) {
  if (!value.is_number() || bound.has(value.get<double>())) return std::nullopt;
  return misfit(bound.expected, value);
}

Fit check_member(std::string_view name, const Json& value) {
  const Bound* bound = bound_of(name);
  if (bound != nullptr && value.is_number()) return check_number(value, *bound);
  if (bound != nullptr && value.is_object()) {  // a number by each word
    for (const auto& [word, number] : value.items()) {
      if (Fit fit = check_number(number, *bound)) return within(word, std::move(fit));
    }
  }
  if (!is_range(name) || !value.is_array() || value.size() != 2) return std::nullopt;
  for (size_t i = 0; bound != nullptr && i < value.size(); ++i) {
    if (Fit fit = check_number(value[i], *bound)) return within(i, std::move(fit));
  }
  const bool both = value[0].is_number() && value[1].is_number();
  if (!both || value[0].get<double>() <= value[1].get<double>()) return std::nullopt;
  return misfit("a low end and a high one, in this order", value);
}

// True if a <= b, but for 1e-9 of the larger one, by which sums of the same numbers may differ.
bool at_most(double a, double b) {
  return a <= b + 1e-9 * std::max(std::abs(a), std::abs(b));
}

using NamedFigure = std::pair<const char*, std::optional<double>>;

// Each of those that are there at most the next one.
Fit in_order(std::initializer_list<NamedFigure> figures) {
  const NamedFigure* before = nullptr;
  for (const NamedFigure& figure : figures) {
    if (!figure.second) continue;
    if (before != nullptr && !at_most(*before->second, *figure.second)) {
      return within(figure.first,
                    misfit(fmt::format("at least {}, which is {}", before->first, *before->second),
                           Json(*figure.second)));
    }
    before = &figure;
  }
  return std::nullopt;
}

Fit check_outcome(const OutcomeCounts& outcome) {
  if (outcome.failed > outcome.attempted) {
    return within("failed", misfit(fmt::format("at most attempted, which is {}", outcome.attempted),
                                   Json(outcome.failed)));
  }
  const int64_t told =
      std::accumulate(outcome.by_status.begin(), outcome.by_status.end(), int64_t{0},
                      [](int64_t sum, const auto& status) { return sum + status.second; });
  if (told == outcome.failed) return std::nullopt;
  return within("by_status",
                misfit(fmt::format("counts that add up to failed, which is {}", outcome.failed),
                       Json(outcome.by_status)));
}

Fit check_latency(const Latency& of) {
  const NamedFigure least{"min_ms", of.min};
  const NamedFigure most{"max_ms", of.max};
  if (Fit fit = in_order({least, {"mean_ms", of.mean}, most})) return fit;
  return in_order({least,
                   {"median_ms", of.median},
                   {"p90_ms", of.p90},
                   {"p95_ms", of.p95},
                   {"p99_ms", of.p99},
                   most});
}

Fit check_tail(const Tail& of) {
  const auto part = [](const char* name, int64_t count, const char* whole, int64_t of_all) -> Fit {
    if (count <= of_all) return std::nullopt;
    return within(name, misfit(fmt::format("at most {}, which is {}", whole, of_all), Json(count)));
  };
  if (Fit fit = part("slow", of.slow, "n", of.n)) return fit;
  if (Fit fit = part("slow_recompiled", of.slow_recompiled, "slow", of.slow)) return fit;
  return part("beyond_fence_recompiled", of.beyond_fence_recompiled, "beyond_fence",
              of.beyond_fence);
}

template <typename T>
Fit check_each(const char* list, const std::vector<T>& of, Fit (*check)(const T&)) {
  for (size_t i = 0; i < of.size(); ++i) {
    if (Fit fit = check(of[i])) return within(list, within(i, std::move(fit)));
  }
  return std::nullopt;
}

}  // namespace

Fit out_of_bounds(const Json& json) {
  if (json.is_array()) {
    for (size_t i = 0; i < json.size(); ++i) {
      if (!json[i].is_structured()) continue;
      if (Fit fit = out_of_bounds(json[i])) return within(i, std::move(fit));
    }
  }
  if (!json.is_object()) return std::nullopt;
  for (const auto& [name, value] : json.items()) {
    if (Fit fit = check_member(name, value)) return within(name, std::move(fit));
    if (!value.is_structured()) continue;
    if (Fit fit = out_of_bounds(value)) return within(name, std::move(fit));
  }
  return std::nullopt;
}

Fit figures_at_odds(const Findings& findings) {
  if (Fit fit = check_each("outcomes", findings.outcomes, check_outcome)) return fit;
  if (Fit fit = check_each("latencies", findings.latencies, check_latency)) return fit;
  return check_each("tails", findings.tails, check_tail);
}

}  // namespace assay
