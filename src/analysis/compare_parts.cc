// One cell of two bundles, cells combined, crash rates.
#include "analysis/compare_parts.h"

#include <algorithm>
#include <cmath>

#include "stats/multiple.h"
#include "stats/power.h"
#include "stats/proportions.h"
#include "stats/ratio.h"
#include "stats/summary.h"
#include "stats/tests.h"

namespace assay {
namespace {

// The error of a logarithm's difference between two sides that know nothing of each other, of the
// variances of both logarithms. Degrees of freedom by Satterthwaite (1946).
std::optional<stats::StandardError> error_of(const SeriesError& base, const SeriesError& cand) {
  const double square = base.square + cand.square;
  if (!(square > 0)) return std::nullopt;
  const double share = base.square / square;
  const double df = 1 / (share * share / base.df + (1 - share) * (1 - share) / cand.df);
  return stats::StandardError{std::sqrt(square), df};
}

// The mean of a bundle's rows of a cell, with the error that verdicts use.
stats::MeanError mean_of(const Group& group, const SeriesByGroup& series) {
  const auto& own = series.at(&group);
  return {*stats::mean(group.warm_ms), own ? std::sqrt(own->error.square) : 0};
}

// One bundle's rows of a cell. `scale` is what its error is relative to: stats::log_scale().
struct Side {
  Side(const Group& of, const Group& other, const SeriesByGroup& series)
      : group(&of),
        mean(mean_of(of, series).mean),
        scale(stats::log_scale(mean_of(of, series), mean_of(other, series), apart(of, other))) {}
  const Group* group;
  double mean;
  double scale;
};

// Both errors of ln(mean).
struct LogErrors {
  SeriesError error;
  SeriesError cautious;
};

void add_tests(double log_ratio, const std::optional<LogErrors>& base,
               const std::optional<LogErrors>& cand, const CompareOptions& options,
               ComparedCell& cell) {
  cell.ratio = std::exp(log_ratio);
  if (!base || !cand) return;
  const auto error = error_of(base->error, cand->error);
  if (!error) return;
  cell.test = stats::t_test(log_ratio, *error);
  if (const auto cautious = error_of(base->cautious, cand->cautious)) {
    cell.cautious_test = stats::t_test(log_ratio, *cautious);
  }
  const double margin = std::log1p(options.margin);
  cell.tost = stats::tost(log_ratio, *error, -margin, margin);
  if (const auto interval = stats::t_interval(log_ratio, *error, options.confidence)) {
    cell.ratio_interval = stats::Interval{std::exp(interval->low), std::exp(interval->high)};
  }
  const auto smallest = stats::minimum_detectable_difference(*error, options.alpha, options.power);
  if (smallest) cell.minimum_detectable = std::expm1(*smallest);
}

std::optional<LogErrors> log_errors(const std::optional<SeriesMean>& series, double scale) {
  if (!series) return std::nullopt;
  const double square = scale * scale;
  return LogErrors{{series->error.square / square, series->error.df},
                   {series->cautious.square / square, series->cautious.df}};
}

// What the rows of these groups add to the mean over groups of ln(mean): a series in the order of
// the run whose own mean has the error of that figure.
std::vector<double> influence_series(const std::vector<Side>& sides) {
  size_t rows = 0;
  for (const Side& side : sides) rows += side.group->warm.size();
  std::vector<std::pair<int64_t, double>> ordered;
  ordered.reserve(rows);
  for (const Side& side : sides) {
    const Group& group = *side.group;
    const double weight = static_cast<double>(rows) /
                          (static_cast<double>(group.warm.size() * sides.size()) * side.scale);
    for (size_t i = 0; i < group.warm.size(); ++i) {
      ordered.emplace_back(group.warm[i]->order_index, weight * (group.warm_ms[i] - side.mean));
    }
  }
  std::ranges::stable_sort(ordered, {}, [](const auto& entry) { return entry.first; });
  std::vector<double> series;
  series.reserve(rows);
  for (const auto& [order, influence] : ordered) series.push_back(influence);
  return series;
}

// One-sided: small where the candidate loses a larger share than the base. Boschloo's exact test;
// for so many rows that it is absent, Fisher's.
double rise_p(const ComparedCrashes& c) {
  const stats::Proportion base{c.base_lost, c.base_attempted};
  const stats::Proportion cand{c.cand_lost, c.cand_attempted};
  if (const auto test = stats::boschloo_exact(cand, base, stats::Side::kGreater)) return test->p;
  const auto fisher = stats::fisher_exact(cand, base, stats::Side::kGreater);
  return fisher ? fisher->p : 1;
}

// Half of alpha for the family of phases, half for that of cells: they count the same rows.
void judge_rises(std::span<ComparedCrashes> all, bool of_phases, double alpha) {
  std::vector<ComparedCrashes*> family;
  std::vector<double> p_values;
  for (ComparedCrashes& c : all) {
    if (c.stratum.has_value() == of_phases || c.base_lost + c.cand_lost == 0) continue;
    c.p = rise_p(c);
    family.push_back(&c);
    p_values.push_back(*c.p);
  }
  const std::vector<double> holm = stats::holm(p_values);
  for (size_t i = 0; i < family.size(); ++i) {
    family[i]->p_holm = holm[i];
    family[i]->rise = holm[i] < alpha / 2;
  }
}

// The mean's error of independent groups.
class MeanError {
 public:
  explicit MeanError(size_t groups) : weight_(1 / static_cast<double>(groups * groups)) {}
  void add(const SeriesError& error) {
    const double term = error.square * weight_;
    square_ += term;
    freedom_ += term * term / error.df;
  }
  // The larger of this and that.
  SeriesError or_larger(const SeriesError& other) const {
    if (other.square > square_) return other;
    return {square_, square_ * square_ / freedom_};
  }

 private:
  double weight_;
  double square_ = 0;
  double freedom_ = 0;
};

// Of the mean over groups of ln(mean), the larger of two: of the groups' own errors, which know how
// far each drifted, and of the series of them all, which knows what they shared.
std::optional<LogErrors> combined_errors(const std::vector<Side>& sides,
                                         const std::optional<SeriesMean>& whole,
                                         const SeriesByGroup& series) {
  MeanError error(sides.size());
  MeanError cautious(sides.size());
  for (const Side& side : sides) {
    const auto own = log_errors(series.at(side.group), side.scale);
    if (!own) return std::nullopt;
    error.add(own->error);
    cautious.add(own->cautious);
  }
  if (!whole) return std::nullopt;
  return LogErrors{error.or_larger(whole->error), cautious.or_larger(whole->cautious)};
}

void count(const Group& group, int64_t& lost, int64_t& attempted) {
  lost += group.failed();
  attempted += static_cast<int64_t>(group.rows.size());
}

}  // namespace

SeriesByGroup series_by_group(std::span<const CellPair> family) {
  std::vector<std::vector<double>> all;
  for (const CellPair& pair : family) {
    all.push_back(pair.base->warm_ms);
    all.push_back(pair.cand->warm_ms);
  }
  std::vector<std::optional<SeriesMean>> means = series_means(all);
  SeriesByGroup series;
  for (size_t i = 0; i < family.size(); ++i) {
    series[family[i].base] = means[2 * i];
    series[family[i].cand] = means[2 * i + 1];
  }
  return series;
}

ComparedCell compare_cell(Phase phase, const CellPair& pair, const SeriesByGroup& series,
                          const CompareOptions& options) {
  ComparedCell cell;
  cell.phase = phase;
  cell.stratum = pair.stratum;
  cell.arm = pair.arm;
  cell.n_base = static_cast<int64_t>(pair.base->warm.size());
  cell.n_cand = static_cast<int64_t>(pair.cand->warm.size());
  const Side base(*pair.base, *pair.cand, series);
  const Side cand(*pair.cand, *pair.base, series);
  cell.difference_ms = cand.mean - base.mean;
  cell.base = series.at(pair.base);
  cell.cand = series.at(pair.cand);
  add_tests(std::log(cand.mean / base.mean), log_errors(cell.base, base.scale),
            log_errors(cell.cand, cand.scale), options, cell);
  return cell;
}

ComparedCell combine_cells(Phase phase, const std::vector<CellPair>& parts,
                           const SeriesByGroup& series, const CompareOptions& options) {
  ComparedCell cell;
  cell.phase = phase;
  cell.arm = parts[0].arm;
  cell.strata = static_cast<int64_t>(parts.size());
  double log_ratio = 0;
  std::vector<Side> base;
  std::vector<Side> cand;
  for (const CellPair& part : parts) {
    base.emplace_back(*part.base, *part.cand, series);
    cand.emplace_back(*part.cand, *part.base, series);
    log_ratio += std::log(cand.back().mean / base.back().mean) / static_cast<double>(parts.size());
    cell.n_base += static_cast<int64_t>(part.base->warm.size());
    cell.n_cand += static_cast<int64_t>(part.cand->warm.size());
  }
  const std::vector<double> runs[] = {influence_series(base), influence_series(cand)};
  const std::vector<std::optional<SeriesMean>> whole = series_means(runs);
  add_tests(log_ratio, combined_errors(base, whole[0], series),
            combined_errors(cand, whole[1], series), options, cell);
  return cell;
}

std::vector<ComparedCrashes> compare_crashes(const std::vector<Stratum>& strata,
                                             const std::vector<CellPair>& pairs,
                                             const CompareOptions& options) {
  std::vector<ComparedCrashes> phases;
  std::vector<ComparedCrashes> cells;
  for (const CellPair& pair : pairs) {
    if (pair.base == nullptr || pair.cand == nullptr) continue;
    const Phase phase = strata[pair.stratum].phase;
    auto whole = std::ranges::find_if(
        phases, [&](const auto& c) { return c.phase == phase && c.arm == pair.arm; });
    if (whole == phases.end()) {
      whole = phases.insert(phases.end(), ComparedCrashes{});
      whole->phase = phase;
      whole->arm = pair.arm;
    }
    ComparedCrashes& cell = cells.emplace_back();
    cell.phase = phase;
    cell.stratum = pair.stratum;
    cell.arm = pair.arm;
    for (ComparedCrashes* crashes : {&*whole, &cell}) {
      count(*pair.base, crashes->base_lost, crashes->base_attempted);
      count(*pair.cand, crashes->cand_lost, crashes->cand_attempted);
    }
  }
  std::ranges::move(cells, std::back_inserter(phases));
  for (ComparedCrashes& c : phases) {
    c.base_interval = stats::wilson_interval(c.base_lost, c.base_attempted, options.confidence);
    c.cand_interval = stats::wilson_interval(c.cand_lost, c.cand_attempted, options.confidence);
  }
  for (const bool of_phases : {true, false}) judge_rises(phases, of_phases, options.alpha);
  return phases;
}

}  // namespace assay
