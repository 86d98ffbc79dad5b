// One cell of two bundles, cells combined, crash rates.
#include "analysis/compare_parts.h"

#include <algorithm>
#include <cmath>

#include "stats/multiple.h"
#include "stats/power.h"
#include "stats/proportions.h"
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

// Both errors of ln(mean), relative to the mean.
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

std::optional<LogErrors> log_errors(const std::optional<SeriesMean>& series) {
  if (!series) return std::nullopt;
  const double square = series->mean * series->mean;
  return LogErrors{{series->error.square / square, series->error.df},
                   {series->cautious.square / square, series->cautious.df}};
}

// What the rows of these groups add to the mean over groups of ln(mean): a series in the order of
// the run whose own mean has the error of that figure.
std::vector<double> influence_series(const std::vector<const Group*>& groups) {
  size_t rows = 0;
  for (const Group* group : groups) rows += group->warm.size();
  std::vector<std::pair<int64_t, double>> ordered;
  ordered.reserve(rows);
  for (const Group* group : groups) {
    const double mean = *stats::mean(group->warm_ms);
    const double weight =
        static_cast<double>(rows) / static_cast<double>(group->warm.size() * groups.size());
    for (size_t i = 0; i < group->warm.size(); ++i) {
      ordered.emplace_back(group->warm[i]->order_index, weight * (group->warm_ms[i] / mean - 1));
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
std::optional<LogErrors> combined_errors(const std::vector<const Group*>& groups) {
  MeanError error(groups.size());
  MeanError cautious(groups.size());
  for (const Group* group : groups) {
    const auto own = log_errors(series_mean(group->warm_ms));
    if (!own) return std::nullopt;
    error.add(own->error);
    cautious.add(own->cautious);
  }
  const auto whole = series_mean(influence_series(groups));
  if (!whole) return std::nullopt;
  return LogErrors{error.or_larger(whole->error), cautious.or_larger(whole->cautious)};
}

void count(const Group& group, int64_t& lost, int64_t& attempted) {
  lost += group.failed();
  attempted += static_cast<int64_t>(group.rows.size());
}

}  // namespace

ComparedCell compare_cell(Phase phase, const CellPair& pair, const CompareOptions& options) {
  ComparedCell cell;
  cell.phase = phase;
  cell.stratum = pair.stratum;
  cell.arm = pair.arm;
  cell.n_base = static_cast<int64_t>(pair.base->warm.size());
  cell.n_cand = static_cast<int64_t>(pair.cand->warm.size());
  const double base = *stats::mean(pair.base->warm_ms);
  const double cand = *stats::mean(pair.cand->warm_ms);
  cell.difference_ms = cand - base;
  cell.base = series_mean(pair.base->warm_ms);
  cell.cand = series_mean(pair.cand->warm_ms);
  add_tests(std::log(cand / base), log_errors(cell.base), log_errors(cell.cand), options, cell);
  return cell;
}

ComparedCell combine_cells(Phase phase, const std::vector<CellPair>& parts,
                           const CompareOptions& options) {
  ComparedCell cell;
  cell.phase = phase;
  cell.arm = parts[0].arm;
  cell.strata = static_cast<int64_t>(parts.size());
  double log_ratio = 0;
  std::vector<const Group*> base;
  std::vector<const Group*> cand;
  for (const CellPair& part : parts) {
    log_ratio += std::log(*stats::mean(part.cand->warm_ms) / *stats::mean(part.base->warm_ms)) /
                 static_cast<double>(parts.size());
    base.push_back(part.base);
    cand.push_back(part.cand);
    cell.n_base += static_cast<int64_t>(part.base->warm.size());
    cell.n_cand += static_cast<int64_t>(part.cand->warm.size());
  }
  add_tests(log_ratio, combined_errors(base), combined_errors(cand), options, cell);
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
