// Crash rates against each other, and what lost rows may hide.
#include "analysis/compare/crashes.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "analysis/contrast/verdict.h"
#include "analysis/rows/processes.h"
#include "stats/hypotheses/proportions.h"
#include "stats/samples/summary.h"

namespace assay {
namespace {

// Boschloo's exact test; for so many that it is absent, Fisher's.
double rise_p_of(const stats::Proportion& cand, const stats::Proportion& base) {
  if (const auto test = stats::boschloo_exact(cand, base, stats::Side::kGreater)) return test->p;
  const auto fisher = stats::fisher_exact(cand, base, stats::Side::kGreater);
  return fisher ? fisher->p : 1;
}

// As many independent rows as tell as much as those of processes that lose rows together.
stats::Proportion independent_rows(const Losses& of, double effect) {
  const auto n = std::max<int64_t>(1, std::llround(static_cast<double>(of.attempted) / effect));
  const auto lost = std::llround(static_cast<double>(of.lost) / effect);
  return {std::min<int64_t>(lost, n), n};
}

// One-sided: small where the candidate loses a larger share than the base. Rows that went with
// their process are no more than one observation.
double rise_p(const ComparedCrashes& of) {
  if (of.by_processes) {
    return rise_p_of({of.cand.died, std::ssize(of.cand.processes)},
                     {of.base.died, std::ssize(of.base.processes)});
  }
  const double effect = std::max(of.base.design_effect(), of.cand.design_effect());
  return rise_p_of(independent_rows(of.cand, effect), independent_rows(of.base, effect));
}

// Half of alpha for the family of phases, half for that of cells: they count the same rows.
void judge_rises(std::span<ComparedCrashes> all, bool of_phases, double alpha) {
  std::vector<ComparedCrashes*> family;
  std::vector<std::optional<double>> p_values;
  for (ComparedCrashes& of : all) {
    if (of.stratum.has_value() == of_phases || of.base.lost + of.cand.lost == 0) continue;
    of.p = rise_p(of);
    family.push_back(&of);
    p_values.push_back(of.p);
  }
  p_values = holm_of(p_values);
  for (size_t i = 0; i < family.size(); ++i) {
    family[i]->p_holm = p_values[i];
    family[i]->rise = *p_values[i] < alpha / 2;
  }
}

double lost_share(const Group& group) {
  return static_cast<double>(group.failed()) / static_cast<double>(group.rows.size());
}

}  // namespace

std::vector<ComparedCrashes> compare_crashes(const std::vector<Stratum>& strata,
                                             const std::vector<CellPair>& pairs,
                                             const CompareOptions& options) {
  std::vector<ComparedCrashes> all;  // phases, then cells
  std::vector<ComparedCrashes> cells;
  for (const CellPair& pair : pairs) {
    if (pair.base == nullptr || pair.cand == nullptr) continue;
    const Phase phase = strata[pair.stratum].phase;
    auto whole = std::ranges::find_if(
        all, [&](const auto& of) { return of.phase == phase && of.arm == pair.arm; });
    if (whole == all.end()) {
      whole = all.insert(all.end(),
                         ComparedCrashes{.phase = phase, .stratum = std::nullopt, .arm = pair.arm});
    }
    cells.push_back(ComparedCrashes{.phase = phase,
                                    .stratum = pair.stratum,
                                    .arm = pair.arm,
                                    .base = losses_of(*pair.base),
                                    .cand = losses_of(*pair.cand)});
    whole->base.add(cells.back().base);
    whole->cand.add(cells.back().cand);
  }
  std::ranges::move(cells, std::back_inserter(all));
  for (ComparedCrashes& of : all) {
    of.by_processes = of.base.died + of.cand.died > 0;
    of.base_interval = of.base.interval();
    of.cand_interval = of.cand.interval();
  }
  for (const bool of_phases : {true, false}) judge_rises(all, of_phases, options.alpha);
  return all;
}

std::optional<stats::Interval> bounds_of_lost(const CellPair& pair) {
  const Group& cand = *pair.cand;
  const double more = lost_share(cand) - lost_share(*pair.base);
  const auto mean = stats::mean(cand.warm_ms);
  if (!(more > 0) || !mean) return std::nullopt;
  // Rows that went with their process would have been as fast as a process is.
  const bool died = losses_of(cand).died > 0 && several_processes(cand);
  const auto& seen = died ? process_figures(cand, ProcessFigure::kMean).values_ms : cand.sorted_ms;
  const auto [least, most] = std::ranges::minmax(seen);
  const auto factor = [&](double ms) { return 1 + more * (ms / *mean - 1); };
  return stats::Interval{factor(least), factor(most)};
}

std::optional<stats::Interval> combined_bounds(
    std::span<const std::optional<stats::Interval>> cells) {
  double low = 0;
  double high = 0;
  bool any = false;
  for (const auto& bounds : cells) {
    if (!bounds) continue;
    any = true;
    low += std::log(bounds->low) / static_cast<double>(cells.size());
    high += std::log(bounds->high) / static_cast<double>(cells.size());
  }
  return any ? std::optional(stats::exp_of({low, high})) : std::nullopt;
}

}  // namespace assay
