// Tails of arms side by side.
#include "analysis/tails.h"

#include <algorithm>

#include "analysis/describe.h"
#include "stats/quantile_ratio.h"

namespace assay {
namespace {

// p99, or the largest sample where there are too few rows for a p99. `sorted` isn't empty.
double high_of(const std::vector<double>& sorted) {
  return stats::percentile(sorted, 0.99).value_or(sorted.back());
}

Tail describe(const Samples& samples, const Group& group) {
  Tail tail;
  tail.stratum = group.stratum;
  tail.arm = samples.arms[group.arm];
  tail.execution = group.execution();
  tail.n = static_cast<int64_t>(group.warm.size());
  tail.p50 = *stats::median(group.sorted_ms);
  tail.high = high_of(group.sorted_ms);
  tail.high_is_max = !stats::percentile(group.sorted_ms, 0.99);
  std::vector<double> rest;
  for (const Row* row : group.warm) {
    const bool carries = carries_compilation(*row);
    const bool slow = *row->latency_ms > kSlowFactor * tail.p50;
    tail.slow += slow ? 1 : 0;
    tail.slow_recompiled += slow && carries ? 1 : 0;
    tail.recompiled += carries ? 1 : 0;
    if (group.wants_compiler) tail.ran_eager += ran_eager(*row) ? 1 : 0;
    if (!carries) rest.push_back(*row->latency_ms);
  }
  if (tail.recompiled > 0 && !rest.empty()) {
    // Of as many rows as are left: the same figure, even where it is no longer a p99 by the rule.
    const std::vector<double> sorted = stats::sorted(rest);
    tail.high_without = tail.high_is_max ? sorted.back() : *stats::quantile(sorted, 0.99);
  }
  return tail;
}

}  // namespace

std::vector<Tail> describe_tails(const Samples& samples, const AnalysisOptions& options) {
  std::vector<Tail> tails;
  for (size_t stratum = 0; stratum < samples.strata.size(); ++stratum) {
    const auto first = samples.groups.begin() + static_cast<int64_t>(samples.first_group[stratum]);
    const auto last =
        samples.groups.begin() + static_cast<int64_t>(samples.first_group[stratum + 1]);
    if (std::none_of(first, last, [](const Group& group) { return group.wants_compiler; })) {
      continue;
    }
    const Group* base = samples.find(stratum, 0);
    for (auto group = first; group != last; ++group) {
      if (group->warm.empty()) continue;
      Tail tail = describe(samples, *group);
      if (base != nullptr && base != &*group) {
        if (const auto ratio =
                stats::quantile_ratio(group->sorted_ms, base->sorted_ms, 0.5,
                                      ratio_bootstrap(options), stream_of(samples, *group))) {
          tail.p50_ratio = ratio->ratio;
          tail.ratio_interval = ratio->interval;
        }
      }
      tails.push_back(std::move(tail));
    }
  }
  return tails;
}

bool is_recompile_tail(const Tail& tail) {
  if (tail.slow_recompiled == 0 || !tail.high_without) return false;
  if (tail.high < kTailFactor * tail.p50) return false;
  return *tail.high_without - tail.p50 <= kTailShare * (tail.high - tail.p50);
}

}  // namespace assay
