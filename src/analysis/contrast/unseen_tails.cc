// Slow calls by arm and phase.
#include "analysis/contrast/unseen_tails.h"

#include <map>
#include <tuple>

#include "analysis/findings/tails.h"
#include "stats/samples/intervals.h"
#include "stats/samples/summary.h"

namespace assay {
namespace {

// Slow calls of one arm over the strata that it shares with another one.
struct SlowShare {
  int64_t rows = 0;
  int64_t slow = 0;
  double excess = 0;

  void add(const SlowCalls& of) {
    rows += of.rows;
    slow += std::ssize(of.slow);
    excess += of.excess;
  }
  double factor() const {
    const auto share = stats::wilson_interval(slow, rows);
    return share ? 1 + share->high * excess / static_cast<double>(slow) : 1;
  }
};

}  // namespace

SlowCalls slow_calls_of(const Group& group) {
  SlowCalls found;
  if (group.sorted_ms.empty()) return found;
  const double median = *stats::median(group.sorted_ms);
  for (const Row* row : group.warm) {
    if (carries_compilation(*row)) continue;
    ++found.rows;
    if (!(*row->latency_ms > kSlowFactor * median)) continue;
    found.slow.push_back(row);
    found.excess += *row->latency_ms / median - 1;
  }
  return found;
}

std::vector<UnseenTail> unseen_tails(const Samples& samples, std::span<const GroupPair> pairs) {
  std::vector<SlowCalls> groups;
  for (const Group& group : samples.groups) groups.push_back(slow_calls_of(group));
  // Keys: phase, slow arm, other arm.
  std::map<std::tuple<Phase, size_t, size_t>, SlowShare> shares;
  const auto share_of = [&](const Group& arm, const Group& beside) -> SlowShare& {
    return shares[{samples.strata[arm.stratum].phase, arm.arm, beside.arm}];
  };
  for (size_t stratum = 0; stratum < samples.strata.size(); ++stratum) {
    for (size_t a = samples.first_group[stratum]; a < samples.first_group[stratum + 1]; ++a) {
      for (size_t b = samples.first_group[stratum]; b < samples.first_group[stratum + 1]; ++b) {
        const bool both = groups[a].rows > 0 && groups[b].rows > 0;
        if (a != b && both) share_of(samples.groups[a], samples.groups[b]).add(groups[a]);
      }
    }
  }
  std::vector<UnseenTail> all;
  for (const GroupPair& pair : pairs) {
    UnseenTail& unseen = all.emplace_back();
    const Group& arm = samples.groups[pair.arm];
    const Group& baseline = samples.groups[pair.baseline];
    const SlowShare& of_arm = share_of(arm, baseline);
    const SlowShare& of_baseline = share_of(baseline, arm);
    if ((of_arm.slow > 0) == (of_baseline.slow > 0)) continue;
    unseen.is_arms = of_arm.slow > 0;
    const SlowCalls& here = groups[unseen.is_arms ? pair.arm : pair.baseline];
    if (here.slow.empty()) unseen.factor = (unseen.is_arms ? of_arm : of_baseline).factor();
  }
  return all;
}

}  // namespace assay
