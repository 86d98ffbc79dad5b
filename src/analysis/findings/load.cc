#include "analysis/findings/load.h"

#include <algorithm>

namespace assay {

const LoadFigures* best_kept(const LoadSummary& load, const std::string& arm) {
  const LoadFigures* best = nullptr;
  for (const LoadFigures& one : load.points) {
    if (one.arm != arm || one.kept != BoundsKept::kYes) continue;
    if (!best || one.requests_per_s.mean > best->requests_per_s.mean) best = &one;
  }
  return best;
}

const LoadFigures* saturation(const LoadSummary& load, const std::string& arm) {
  constexpr double kFollows = 0.95;
  constexpr double kLeastGain = 1.1;
  std::vector<const LoadFigures*> closed;
  const LoadFigures* found = nullptr;
  for (const LoadFigures& one : load.points) {
    if (one.arm != arm) continue;
    if (one.point.concurrency) closed.push_back(&one);
    const bool follows =
        one.growing_runs == 0 && one.requests_per_s.mean >= kFollows * one.offered_per_s.mean;
    if (one.point.rate && !follows && (!found || one.point.rate < found->point.rate)) found = &one;
  }
  if (found) return found;
  std::ranges::stable_sort(closed, {}, [](const auto* one) { return *one->point.concurrency; });
  for (size_t i = 1; i < closed.size(); ++i) {
    const bool same_kind = closed[i]->stratum != closed[i - 1]->stratum &&
                           *closed[i]->point.concurrency >=
                               1.5 * static_cast<double>(*closed[i - 1]->point.concurrency);
    if (same_kind && closed[i]->tokens_per_s.mean < kLeastGain * closed[i - 1]->tokens_per_s.mean)
      return closed[i];
  }
  return nullptr;
}

}  // namespace assay
