// Two-way analysis of variance by sums of squares of cell means.
#include "stats/hypotheses/anova.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "stats/distributions/distributions.h"
#include "stats/hypotheses/additive_model.h"

namespace assay::stats {
namespace {

// The cells' deviations from the grand mean, in units that keep their squares in range.
using Deviations = std::vector<double>;  // [cell]

constexpr double kMostWork = 4e9;  // multiplications: seconds

struct Projected {
  double squares = 0;
  double df = 0;
};

double weighted_squares(std::span<const AnovaCell> cells, const Deviations& y) {
  double sum = 0;
  for (size_t i = 0; i < y.size(); ++i) sum += static_cast<double>(cells[i].values.n) * y[i] * y[i];
  return sum;
}

size_t levels_of(std::span<const AnovaCell> cells, size_t AnovaCell::*level) {
  size_t highest = 0;
  for (const AnovaCell& cell : cells) highest = std::max(highest, cell.*level);
  return highest + 1;
}

// Squares that the factor adds to the other one's: those of the part of y that both explain
// together, less the part that the other explains alone.
Projected given_other(std::span<const AnovaCell> cells, const AdditiveModel& both,
                      size_t AnovaCell::*factor, const Deviations& y) {
  const auto other = factor == &AnovaCell::a ? &AnovaCell::b : &AnovaCell::a;
  Deviations explained = less_level_means(cells, other, y);
  const Deviations left = both.residuals(explained);
  for (size_t i = 0; i < explained.size(); ++i) explained[i] -= left[i];
  const Deviations added = less_level_means(cells, other, std::move(explained));
  return {weighted_squares(cells, added), static_cast<double>(levels_of(cells, factor) - 1)};
}

// Squares that the factor adds to those of all other terms, if no cell is empty: weighted squares
// of the unweighted means of its levels (Yates 1934), whose variances are those of means of the
// cells' means.
Projected given_all(std::span<const AnovaCell> cells, size_t AnovaCell::*factor,
                    const Deviations& y) {
  const size_t count = levels_of(cells, factor);
  const double others = static_cast<double>(cells.size()) / static_cast<double>(count);
  std::vector<double> means(count, 0);
  std::vector<double> variances(count, 0);
  for (size_t i = 0; i < cells.size(); ++i) {
    means[cells[i].*factor] += y[i] / others;
    variances[cells[i].*factor] += 1 / (static_cast<double>(cells[i].values.n) * others * others);
  }
  double sum = 0;
  double weights = 0;
  for (size_t level = 0; level < count; ++level) {
    sum += means[level] / variances[level];
    weights += 1 / variances[level];
  }
  double squares = 0;
  for (size_t level = 0; level < count; ++level) {
    const double distance = means[level] - sum / weights;
    squares += distance * distance / variances[level];
  }
  return {squares, static_cast<double>(count - 1)};
}

bool is_complete(std::span<const AnovaCell> cells) {
  std::set<std::pair<size_t, size_t>> seen;
  std::set<size_t> levels_a;
  std::set<size_t> levels_b;
  for (const AnovaCell& cell : cells) {
    if (cell.values.n < 1 || !std::isfinite(cell.values.mean)) return false;
    if (!(cell.values.variance >= 0) || !std::isfinite(cell.values.variance)) return false;
    if (!seen.emplace(cell.a, cell.b).second) return false;
    levels_a.insert(cell.a);
    levels_b.insert(cell.b);
  }
  // Every level up to the highest has a cell.
  return levels_a.size() >= 2 && levels_b.size() >= 2 &&
         *levels_a.rbegin() + 1 == levels_a.size() && *levels_b.rbegin() + 1 == levels_b.size();
}

void finish(AnovaTerm& term, const Projected& part, double unit, const TwoWayAnova& table) {
  term.sum_of_squares = part.squares * unit * unit;
  term.df = part.df;
  if (table.total_sum_of_squares > 0) {
    term.eta_squared = term.sum_of_squares / table.total_sum_of_squares;
  }
  const double residual = table.residual_sum_of_squares;
  if (term.sum_of_squares + residual > 0) {
    term.partial_eta_squared = term.sum_of_squares / (term.sum_of_squares + residual);
  }
  if (!(term.df > 0) || !(table.residual_df > 0) || !(residual > 0)) return;
  const double f = term.sum_of_squares / term.df / (residual / table.residual_df);
  const auto area = f_upper(f, term.df, table.residual_df);
  if (!area) return;
  term.f = f;
  term.p = area->p;
  term.log_p = area->log_p;
}

}  // namespace

bool anova_is_too_large(std::span<const AnovaCell> cells) {
  return AdditiveModel::cost(cells) > kMostWork;
}

std::optional<TwoWayAnova> two_way_anova(std::span<const AnovaCell> cells, SumsOfSquares type) {
  if (!is_complete(cells) || anova_is_too_large(cells)) return std::nullopt;
  const size_t levels_a = levels_of(cells, &AnovaCell::a);
  const size_t levels_b = levels_of(cells, &AnovaCell::b);
  const bool whole = cells.size() == levels_a * levels_b;
  if (type == SumsOfSquares::kTypeIII && !whole) return std::nullopt;
  double n = 0;
  double grand = 0;
  for (const AnovaCell& cell : cells) {
    n += static_cast<double>(cell.values.n);
    grand += static_cast<double>(cell.values.n) * (cell.values.mean - cells[0].values.mean);
  }
  grand = grand / n + cells[0].values.mean;
  double unit = 0;  // the largest deviation of a cell
  for (const AnovaCell& cell : cells) unit = std::max(unit, std::abs(cell.values.mean - grand));
  if (!(unit > 0)) unit = 1;
  TwoWayAnova table;
  Deviations y;
  for (const AnovaCell& cell : cells) {
    const auto size = static_cast<double>(cell.values.n);
    y.push_back((cell.values.mean - grand) / unit);
    table.total_sum_of_squares += size * y.back() * y.back() * unit * unit;
    if (cell.values.n > 1) table.residual_sum_of_squares += (size - 1) * cell.values.variance;
  }
  table.total_sum_of_squares += table.residual_sum_of_squares;
  if (!std::isfinite(table.total_sum_of_squares)) return std::nullopt;
  table.residual_df = n - static_cast<double>(cells.size());

  const AdditiveModel both(cells);
  if (!both.connected()) return std::nullopt;
  const auto main_effect = [&](size_t AnovaCell::*factor) {
    return type == SumsOfSquares::kTypeII ? given_other(cells, both, factor, y)
                                          : given_all(cells, factor, y);
  };
  Projected interaction{0, static_cast<double>(cells.size() - (levels_a + levels_b - 1))};
  if (interaction.df > 0) interaction.squares = weighted_squares(cells, both.residuals(y));
  finish(table.a, main_effect(&AnovaCell::a), unit, table);
  finish(table.b, main_effect(&AnovaCell::b), unit, table);
  finish(table.interaction, interaction, unit, table);
  return table;
}

std::optional<std::vector<AnovaCell>> anova_cells(std::span<const size_t> a,
                                                  std::span<const size_t> b,
                                                  std::span<const double> y) {
  assert(a.size() == y.size() && b.size() == y.size());
  std::map<std::pair<size_t, size_t>, std::vector<double>> values;
  for (size_t i = 0; i < y.size(); ++i) values[{a[i], b[i]}].push_back(y[i]);
  std::vector<AnovaCell> cells;
  for (const auto& [levels, sample] : values) {
    const bool single = sample.size() == 1;
    const auto of_cell = single ? std::optional(Moments{1, sample[0], 0}) : moments(sample);
    if (!of_cell) return std::nullopt;
    cells.push_back({levels.first, levels.second, *of_cell});
  }
  return cells;
}

}  // namespace assay::stats
