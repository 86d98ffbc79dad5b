// Why p99 is high: slow calls of each arm, and what the rows recorded beside them.
#include "analysis/describe/slow_calls.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "analysis/rows/gpu_neighbours.h"
#include "analysis/rows/processes.h"
#include "stats/hypotheses/proportions.h"
#include "stats/samples/summary.h"

namespace assay {
namespace {

constexpr std::string_view kOneProcess = "one_process";
constexpr double kNsOfMs = 1e6;
constexpr auto kBesideNs = static_cast<int64_t>(kBesideSeconds * 1e9);

// The upper limit of what isn't slow; absent for too few values, or values without a spread.
std::optional<double> limit_of(const std::vector<double>& sorted) {
  if (std::ssize(sorted) < kLeastForSlowCalls) return std::nullopt;
  const auto fences = stats::tukey_fences(sorted);
  if (!fences) return std::nullopt;
  return std::max(fences->high, kLeastSlowFactor * *stats::median(sorted));
}

// Rows next to a slow call of another arm, before it or after it, in the order of the run.
std::set<const Row*> beside_slow(const Bundle& bundle, const std::vector<const Row*>& slow) {
  std::set<const Row*> beside;
  const Row* const first = bundle.rows.data();
  const Row* const end = first + bundle.rows.size();
  const auto ends_at = [](const Row& row) {
    return row.started_at_ns + static_cast<int64_t>(row.latency_ms.value_or(0) * kNsOfMs);
  };
  const auto is_other = [](const Row& row, const Row& call) {
    return row.arm != call.arm && row.latency_ms && !row.cold;
  };
  for (const Row* call : slow) {
    if (call->started_at_ns <= 0) continue;  // imported rows may have no clock
    const Row* after = call + 1;
    while (after != end && !is_other(*after, *call)) ++after;
    if (after != end && after->started_at_ns - ends_at(*call) <= kBesideNs) beside.insert(after);
    const Row* before = call;
    while (before != first && !is_other(*(before - 1), *call)) --before;
    if (before != first && call->started_at_ns - ends_at(*(before - 1)) <= kBesideNs) {
      beside.insert(before - 1);
    }
  }
  return beside;
}

// The group's facts that tell a row's circumstances.
struct GroupFacts {
  std::set<const Row*> gpu_shared;
  std::map<int64_t, const Row*> first_of_process;  // empty where rows name no process
  std::array<std::optional<double>, kYardsticks> yardstick_limits;
  std::optional<int64_t> slow_process;
};

using Yardstick = std::optional<double> Measured::*;
constexpr Yardstick kYardstickMembers[kYardsticks] = {&Measured::yardstick_lookups_us,
                                                      &Measured::yardstick_multiplies_us};

GroupFacts facts_of(const Group& group) {
  GroupFacts facts;
  for (const RowsBeside& beside : rows_beside(group)) {
    if (beside.computed()) facts.gpu_shared.insert(beside.rows.begin(), beside.rows.end());
  }
  for (const Row* row : group.warm) {
    if (!row->process) continue;
    const Row*& first = facts.first_of_process[process_of(*row)];
    if (first == nullptr || row->order_index < first->order_index) first = row;
  }
  for (size_t i = 0; i < kYardsticks; ++i) {
    std::vector<double> values;
    for (const Row* row : group.warm) {
      if (row->*kYardstickMembers[i]) values.push_back(*(row->*kYardstickMembers[i]));
    }
    facts.yardstick_limits[i] = limit_of(stats::sorted(values));
  }
  return facts;
}

bool has(std::string_view cause, const Group& group, const GroupFacts& facts,
         const std::set<const Row*>& beside, const Row& row) {
  if (cause == "recompile") return carries_compilation(row);
  if (cause == "ran_eager") return group.ran_eager(row);
  if (cause == "throttled") return row.throttled.value_or(false);
  if (cause == "gpu_shared") return facts.gpu_shared.contains(&row);
  if (cause == "others_slow") return beside.contains(&row);
  if (cause == "slow_processor") {
    for (size_t i = 0; i < kYardsticks; ++i) {
      const auto& value = row.*kYardstickMembers[i];
      if (value && facts.yardstick_limits[i] && *value > *facts.yardstick_limits[i]) return true;
    }
    return false;
  }
  if (cause == "first_of_process") {
    const auto first = facts.first_of_process.find(process_of(row));
    return first != facts.first_of_process.end() && first->second == &row;
  }
  return row.process && facts.slow_process && process_of(row) == *facts.slow_process;
}

// True if slow calls have a circumstance more often than chance explains.
bool is_commoner(const SlowCause& cause, size_t place, int64_t slow, int64_t others) {
  const auto test =
      stats::fisher_exact({cause.slow, slow}, {cause.others, others}, stats::Side::kGreater);
  return test && test->p <= (place < kCausesThatLengthen ? kMostChanceOfThose : kMostChance);
}

// The process that has nearly all of these calls, of several.
std::optional<int64_t> one_process_of(const std::vector<const Row*>& rows, size_t processes) {
  if (processes < 2) return std::nullopt;
  std::map<int64_t, int64_t> counts;
  for (const Row* row : rows) ++counts[process_of(*row)];
  for (const auto& [process, count] : counts) {
    if (count >= kLeastOfOneProcess && (std::ssize(rows) - count) * 4 <= count) return process;
  }
  return std::nullopt;
}

ArmSlowCalls describe(const Samples& samples, const Group& group, double limit,
                      const std::set<const Row*>& beside) {
  ArmSlowCalls found;
  found.stratum = group.stratum;
  found.arm = samples.arms[group.arm];
  found.n = std::ssize(group.warm);
  found.p50 = *stats::median(group.sorted_ms);
  found.high = stats::p99_or_max(group.sorted_ms);
  found.high_is_max = !stats::percentile(group.sorted_ms, 0.99);
  found.limit = limit;
  GroupFacts facts = facts_of(group);
  std::vector<const Row*> open;  // slow calls without a cause so far
  for (const Row* row : group.warm) {
    if (*row->latency_ms > limit) open.push_back(row);
  }
  found.slow = std::ssize(open);
  std::set<const Row*> explained;
  for (size_t place = 0; place < std::size(kSlowCauses); ++place) {
    const std::string_view kind = kSlowCauses[place];
    if (kind == kOneProcess)
      facts.slow_process = one_process_of(open, facts.first_of_process.size());
    SlowCause cause{std::string(kind)};
    std::vector<const Row*> with;
    for (const Row* row : group.warm) {
      if (!has(kind, group, facts, beside, *row)) continue;
      if (*row->latency_ms <= limit) ++cause.others;
      if (std::ranges::find(open, row) != open.end()) with.push_back(row);
    }
    cause.slow = std::ssize(with);
    const int64_t others = found.n - found.slow;
    if (cause.slow == 0 || !is_commoner(cause, place, std::ssize(open), others)) continue;
    explained.insert(with.begin(), with.end());
    std::erase_if(open, [&](const Row* row) { return explained.contains(row); });
    found.causes.push_back(std::move(cause));
  }
  std::vector<double> rest;
  for (const Row* row : group.warm) {
    if (!explained.contains(row)) rest.push_back(*row->latency_ms);
  }
  if (!found.causes.empty() && !rest.empty()) {
    // The same figure of the rows that are left, even if it is no longer a p99 by the rule.
    const std::vector<double> sorted = stats::sorted(rest);
    found.high_without = found.high_is_max ? sorted.back() : *stats::quantile(sorted, 0.99);
  }
  return found;
}

}  // namespace

std::vector<ArmSlowCalls> describe_slow_calls(const Bundle& bundle, const Samples& samples) {
  std::vector<std::optional<double>> limits;
  std::vector<const Row*> slow;
  for (const Group& group : samples.groups) {
    limits.push_back(limit_of(group.sorted_ms));
    for (const Row* row : group.warm) {
      if (limits.back() && *row->latency_ms > *limits.back()) slow.push_back(row);
    }
  }
  const std::set<const Row*> beside = beside_slow(bundle, slow);
  std::vector<ArmSlowCalls> all;
  for (size_t g = 0; g < samples.groups.size(); ++g) {
    const Group& group = samples.groups[g];
    if (limits[g] && group.sorted_ms.back() > *limits[g]) {
      all.push_back(describe(samples, group, *limits[g], beside));
    }
  }
  return all;
}

}  // namespace assay
