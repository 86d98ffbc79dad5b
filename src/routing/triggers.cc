// Measured rows to thresholds.
#include "routing/triggers.h"

#include <algorithm>
#include <cmath>

#include "base/text/text.h"
#include "stats/samples/intervals.h"

namespace assay {
namespace {

// ln of the beta function.
double log_beta(double a, double b) {
  return std::lgamma(a) + std::lgamma(b) - std::lgamma(a + b);
}

// ln of P(K = k), K beta-binomial of `window` draws.
double log_beta_binomial(double k, double window, double a, double b) {
  return -std::log(window + 1) - log_beta(window - k + 1, k + 1) + log_beta(k + a, window - k + b) -
         log_beta(a, b);
}

struct RuleCounts {
  int64_t attempted = 0;
  int64_t warm = 0;
  int64_t compiled = 0;  // warm rows that carry a compilation
  int64_t graphs = 0;    // summed over strata: the most that a process of each had
  bool counted = false;  // of every stratum somebody counted graphs
  int64_t strata = 0;
};

RuleCounts count_rows(const std::vector<const Group*>& groups) {
  RuleCounts counts;
  counts.counted = true;
  for (const Group* group : groups) {
    ++counts.strata;
    counts.attempted += std::ssize(group->rows);
    counts.warm += std::ssize(group->warm);
    counts.compiled += std::ranges::count_if(
        group->warm, [](const Row* row) { return carries_compilation(*row); });
    const auto graphs = group->evidence == nullptr
                            ? std::nullopt
                            : group->evidence->most_counted(Counter::kUniqueGraphs);
    counts.counted = counts.counted && graphs.has_value();
    counts.graphs += graphs.value_or(0);
  }
  return counts;
}

PolicyTrigger recompile_trigger(const RuleCounts& counts) {
  PolicyTrigger trigger;
  trigger.kind = TriggerKind::kRecompileAfterWarmup;
  // If no measured call compiled, one that does is news; if some did, more of them are.
  if (counts.compiled > 0) {
    trigger.window = kTriggerWindow;
    trigger.allowed = allowed_events(counts.compiled, counts.warm, kTriggerWindow);
  }
  trigger.source =
      fmt::format("{} of {} compiled", counts.compiled, counted(counts.warm, "warm row"));
  return trigger;
}

PolicyTrigger none_allowed(TriggerKind kind, const std::string& source) {
  return {.kind = kind, .allowed = 0, .window = 0, .limit_ms = {}, .source = source};
}

// The stratum whose slow calls are the slowest: of it the latency that one row in a hundred passed.
PolicyTrigger slow_trigger(const std::vector<const Group*>& groups) {
  PolicyTrigger trigger;
  trigger.kind = TriggerKind::kSlowRequest;
  trigger.window = kTriggerWindow;
  trigger.limit_ms = 0;
  for (const Group* group : groups) {
    const auto rows = std::ssize(group->sorted_ms);
    const int64_t above = rows / kLeastRowsOfP99;
    const double limit = measured_p99(*group).value_or(0);
    if (limit <= *trigger.limit_ms) continue;
    trigger.limit_ms = limit;
    trigger.allowed = allowed_events(above, rows, kTriggerWindow);
    trigger.source = fmt::format("{} of {} took longer", above, counted(rows, "warm row"));
  }
  return trigger;
}

}  // namespace

int64_t allowed_events(int64_t events, int64_t rows, int64_t window) {
  if (rows <= events) return window;
  const auto a = static_cast<double>(events + 1);
  const auto b = static_cast<double>(rows - events);
  double above = 0;  // P(K > k), summed from the far end
  for (int64_t k = window; k > 0; --k) {
    above += std::exp(log_beta_binomial(static_cast<double>(k), static_cast<double>(window), a, b));
    if (above > kFalseAlarm) return k;
  }
  return 0;
}

std::vector<PolicyTrigger> triggers_of(const std::vector<const Group*>& groups) {
  const RuleCounts counts = count_rows(groups);
  const std::string none = fmt::format("none in {}", counted(counts.attempted, "row"));
  std::vector<PolicyTrigger> triggers = {recompile_trigger(counts)};
  if (counts.counted) {
    triggers.push_back({.kind = TriggerKind::kUniqueGraphs,
                        .allowed = counts.graphs,
                        .window = 0,
                        .limit_ms = {},
                        .source = fmt::format("the most that a process had, over {}",
                                              counted(counts.strata, "stratum", "strata"))});
  }
  const auto lost = stats::wilson_interval(0, counts.attempted);
  triggers.push_back(none_allowed(TriggerKind::kRecompileLimit, none));
  triggers.push_back(none_allowed(TriggerKind::kFallback, none));
  triggers.push_back(none_allowed(
      TriggerKind::kLostRow,
      fmt::format("{}; the rate is below {:.2g} % (Wilson)", none, lost ? lost->high * 100 : 100)));
  if (p99_undecided(groups).empty()) triggers.push_back(slow_trigger(groups));
  return triggers;
}

std::optional<double> measured_p99(const Group& group) {
  const auto rows = std::ssize(group.sorted_ms);
  if (rows < kLeastRowsOfP99) return std::nullopt;
  return group.sorted_ms[static_cast<size_t>(rows - 1 - rows / kLeastRowsOfP99)];
}

std::string p99_undecided(const std::vector<const Group*>& groups) {
  int64_t fewest = kLeastRowsOfP99;
  for (const Group* group : groups) fewest = std::min(fewest, std::ssize(group->sorted_ms));
  if (fewest >= kLeastRowsOfP99) return "";
  return fmt::format("not decided: {} can't bound p99 (it takes {})", counted(fewest, "warm row"),
                     kLeastRowsOfP99);
}

}  // namespace assay
