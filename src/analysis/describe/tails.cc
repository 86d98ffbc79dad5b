// Tails of arms side by side.
#include "analysis/describe/tails.h"

#include <algorithm>
#include <ranges>

#include "analysis/contrast/row_statistics.h"
#include "analysis/contrast/widenings.h"
#include "analysis/rows/each.h"
#include "stats/samples/summary.h"

namespace assay {
namespace {

Tail describe(const Samples& samples, const Group& group) {
  Tail tail;
  tail.stratum = group.stratum;
  tail.arm = samples.arms[group.arm];
  tail.execution = group.execution();
  tail.n = static_cast<int64_t>(group.warm.size());
  tail.p50 = *stats::median(group.sorted_ms);
  tail.high = stats::p99_or_max(group.sorted_ms);
  tail.high_is_max = !stats::percentile(group.sorted_ms, 0.99);
  if (const auto fences = stats::tukey_fences(group.sorted_ms)) tail.fence = fences->high;
  std::vector<double> rest;
  for (const Row* row : group.warm) {
    const bool carries = carries_compilation(*row);
    const bool slow = *row->latency_ms > kSlowFactor * tail.p50;
    tail.slow += slow ? 1 : 0;
    tail.slow_recompiled += slow && carries ? 1 : 0;
    tail.recompiled += carries ? 1 : 0;
    const bool beyond = tail.fence && *row->latency_ms > *tail.fence;
    tail.beyond_fence += beyond ? 1 : 0;
    tail.beyond_fence_recompiled += beyond && carries ? 1 : 0;
    tail.ran_eager += group.ran_eager(*row) ? 1 : 0;
    if (!carries) rest.push_back(*row->latency_ms);
  }
  if (tail.recompiled > 0 && !rest.empty()) {
    // The same figure of the rows that are left, even if it is no longer a p99 by the rule.
    const std::vector<double> sorted = stats::sorted(rest);
    tail.high_without = tail.high_is_max ? sorted.back() : *stats::quantile(sorted, 0.99);
  }
  return tail;
}

}  // namespace

std::vector<Tail> describe_tails(const ContrastInputs& in, stats::QuantileBootstrap& quantiles,
                                 ThreadPool* pool) {
  const Samples& samples = in.samples;
  std::vector<size_t> groups;
  for (size_t stratum = 0; stratum < samples.strata.size(); ++stratum) {
    const size_t first = samples.first_group[stratum];
    const size_t last = samples.first_group[stratum + 1];
    const auto wants = [&](size_t g) { return samples.groups[g].wants_compiler; };
    if (!std::ranges::any_of(std::views::iota(first, last), wants)) continue;
    for (size_t g = first; g < last; ++g) {
      if (!samples.groups[g].warm.empty()) groups.push_back(g);
    }
  }
  std::vector<GroupPair> pairs;  // of a group with itself where its stratum has no baseline
  for (const size_t g : groups) {
    const Group* base = samples.find(samples.groups[g].stratum, 0);
    pairs.push_back({g, base ? samples.index_of(*base) : g});
  }
  const std::vector<stats::Widening> widenings = contrast_widenings(samples, in.units, pairs);
  std::vector<Tail> tails(groups.size());
  for_each_index(groups.size(), pool, [&](size_t i) {
    const Group& group = samples.groups[groups[i]];
    const Group* base = &samples.groups[pairs[i].baseline];
    tails[i] = describe(samples, group);
    if (base == &group) return;
    if (const auto ratio = quantile_ratio_by_units(in, pairs[i], 0.5, widenings[i], quantiles)) {
      tails[i].p50_ratio = ratio->ratio;
      tails[i].ratio_interval = ratio->interval;
      tails[i].ratio_process_range = ratio->process_range;
    }
  });
  return tails;
}

bool is_recompile_tail(const Tail& tail) {
  if (tail.slow_recompiled == 0 || !tail.high_without) return false;
  if (tail.high < kTailFactor * tail.p50) return false;
  return *tail.high_without - tail.p50 <= kTailShare * (tail.high - tail.p50);
}

}  // namespace assay
