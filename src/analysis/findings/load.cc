#include "analysis/findings/load.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace assay {

std::vector<LoadSeries> load_series(const LoadSummary& load, const std::vector<Stratum>& strata,
                                    const std::string& arm) {
  std::map<std::tuple<std::string, int64_t, std::string>, size_t> places;
  std::vector<LoadSeries> all;
  for (const LoadFigures& one : load.points) {
    if (one.arm != arm) continue;
    const Stratum& stratum = strata[one.stratum];
    // "prompt_128, 4 at once": what stands before the point.
    const std::string base =
        stratum.scenario.substr(0, std::min(stratum.scenario.rfind(", "), stratum.scenario.size()));
    const bool of_study = base != stratum.scenario;
    const auto [at, fresh] = places.try_emplace(
        {stratum.model, stratum.new_tokens, of_study ? base : std::string()}, all.size());
    if (fresh) all.emplace_back();
    all[at->second].push_back(&one);
  }
  return all;
}

const LoadFigures* best_kept(const LoadSeries& series) {
  const LoadFigures* best = nullptr;
  for (const LoadFigures* one : series) {
    if (one->kept != BoundsKept::kYes) continue;
    if (!best || one->requests_per_s.mean > best->requests_per_s.mean) best = one;
  }
  return best;
}

const LoadFigures* saturation(const LoadSeries& series) {
  constexpr double kFollows = 0.95;
  constexpr double kLeastGain = 1.1;
  constexpr double kLeastStep = 1.5;
  LoadSeries closed;
  const LoadFigures* found = nullptr;
  for (const LoadFigures* one : series) {
    if (one->point.concurrency) closed.push_back(one);
    const OverRuns& ended = one->requests_per_s;
    const double most_likely = ended.interval ? ended.interval->high : ended.most;
    const bool follows =
        2 * one->growing_runs <= one->runs && most_likely >= kFollows * one->offered_per_s.mean;
    if (one->point.rate && !follows && (!found || one->point.rate < found->point.rate)) found = one;
  }
  if (found) return found;
  std::ranges::stable_sort(closed, {}, [](const auto* one) { return *one->point.concurrency; });
  for (size_t i = 1; i < closed.size(); ++i) {
    const auto before = static_cast<double>(*closed[i - 1]->point.concurrency);
    if (static_cast<double>(*closed[i]->point.concurrency) < kLeastStep * before) continue;
    if (closed[i]->tokens_per_s.mean < kLeastGain * closed[i - 1]->tokens_per_s.mean)
      return closed[i];
  }
  return nullptr;
}

}  // namespace assay
