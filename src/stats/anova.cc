// Two-way analysis of variance by projections of cell means.
#include "stats/anova.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "stats/distributions.h"

namespace assay::stats {
namespace {

using Column = std::vector<double>;  // [cell], each entry times the square root of the cell's n

double dot(const Column& x, const Column& y) {
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

struct Projected {
  double squares = 0;
  double df = 0;
};

// The design's columns, in blocks: constant, a, b, interaction.
class Design {
 public:
  explicit Design(std::span<const AnovaCell> cells) : cells_(cells) {
    for (const AnovaCell& cell : cells) {
      levels_a_ = std::max(levels_a_, cell.a + 1);
      levels_b_ = std::max(levels_b_, cell.b + 1);
    }
  }

  size_t levels_a() const { return levels_a_; }
  size_t levels_b() const { return levels_b_; }

  std::vector<Column> constant() const {
    return {column([](const AnovaCell&) { return 1.0; })};
  }
  std::vector<Column> a() const {
    std::vector<Column> block;
    for (size_t i = 0; i + 1 < levels_a_; ++i) {
      block.push_back(column([&](const AnovaCell& c) { return code(c.a, i, levels_a_); }));
    }
    return block;
  }
  std::vector<Column> b() const {
    std::vector<Column> block;
    for (size_t j = 0; j + 1 < levels_b_; ++j) {
      block.push_back(column([&](const AnovaCell& c) { return code(c.b, j, levels_b_); }));
    }
    return block;
  }
  std::vector<Column> interaction() const {
    std::vector<Column> block;
    for (size_t i = 0; i + 1 < levels_a_; ++i) {
      for (size_t j = 0; j + 1 < levels_b_; ++j) {
        block.push_back(column(
            [&](const AnovaCell& c) { return code(c.a, i, levels_a_) * code(c.b, j, levels_b_); }));
      }
    }
    return block;
  }

 private:
  // Effects that sum to 0: the last level is minus the others.
  static double code(size_t level, size_t effect, size_t levels) {
    return level + 1 == levels ? -1 : level == effect ? 1 : 0;
  }

  template <typename F>
  Column column(const F& entry) const {
    Column x;
    for (const AnovaCell& cell : cells_) {
      x.push_back(entry(cell) * std::sqrt(static_cast<double>(cell.values.n)));
    }
    return x;
  }

  std::span<const AnovaCell> cells_;
  size_t levels_a_ = 0;
  size_t levels_b_ = 0;
};

// An orthonormal basis that grows by blocks of columns.
class Basis {
 public:
  // Adds what is new in the block; the squared length and dimension of the target's part in it.
  Projected add(const std::vector<Column>& block, const Column& target) {
    Projected part;
    for (Column x : block) {
      const double before = std::sqrt(dot(x, x));
      for (int pass = 0; pass < 2; ++pass) {  // the second takes out what rounding left
        for (const Column& q : columns_) {
          const double along = dot(q, x);
          for (size_t i = 0; i < x.size(); ++i) x[i] -= along * q[i];
        }
      }
      const double length = std::sqrt(dot(x, x));
      if (!(length > before * 1e-9)) continue;  // nothing new
      for (double& entry : x) entry /= length;
      const double along = dot(x, target);
      part.squares += along * along;
      ++part.df;
      columns_.push_back(std::move(x));
    }
    return part;
  }

 private:
  std::vector<Column> columns_;
};

using Blocks = std::vector<std::vector<Column>>;

// The last block's part, given the others.
Projected given(const Blocks& others, const std::vector<Column>& block, const Column& target) {
  Basis basis;
  for (const auto& other : others) basis.add(other, target);
  return basis.add(block, target);
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

std::optional<TwoWayAnova> two_way_anova(std::span<const AnovaCell> cells, SumsOfSquares type) {
  if (!is_complete(cells)) return std::nullopt;
  const Design design(cells);
  const bool whole = cells.size() == design.levels_a() * design.levels_b();
  if (type == SumsOfSquares::kTypeIII && !whole) return std::nullopt;
  double n = 0;
  double grand = 0;
  for (const AnovaCell& cell : cells) {
    n += static_cast<double>(cell.values.n);
    grand += static_cast<double>(cell.values.n) * (cell.values.mean - cells[0].values.mean);
  }
  grand = grand / n + cells[0].values.mean;
  double unit = 0;  // the largest deviation of a cell: keeps squares in range
  for (const AnovaCell& cell : cells) unit = std::max(unit, std::abs(cell.values.mean - grand));
  if (!(unit > 0)) unit = 1;
  TwoWayAnova table;
  Column target;
  for (const AnovaCell& cell : cells) {
    const auto size = static_cast<double>(cell.values.n);
    const double distance = (cell.values.mean - grand) / unit;
    target.push_back(distance * std::sqrt(size));
    table.total_sum_of_squares += size * distance * distance * unit * unit;
    if (cell.values.n > 1) table.residual_sum_of_squares += (size - 1) * cell.values.variance;
  }
  table.total_sum_of_squares += table.residual_sum_of_squares;
  if (!std::isfinite(table.total_sum_of_squares)) return std::nullopt;
  table.residual_df = n - static_cast<double>(cells.size());

  const auto one = design.constant();
  const auto a = design.a();
  const auto b = design.b();
  const auto ab = design.interaction();
  const bool marginal = type == SumsOfSquares::kTypeII;
  const Projected of_a = given(marginal ? Blocks{one, b} : Blocks{one, b, ab}, a, target);
  const Projected of_b = given(marginal ? Blocks{one, a} : Blocks{one, a, ab}, b, target);
  if (of_a.df < static_cast<double>(a.size()) || of_b.df < static_cast<double>(b.size())) {
    return std::nullopt;
  }
  finish(table.a, of_a, unit, table);
  finish(table.b, of_b, unit, table);
  finish(table.interaction, given({one, a, b}, ab, target), unit, table);
  return table;
}

std::vector<AnovaCell> anova_cells(std::span<const size_t> a, std::span<const size_t> b,
                                   std::span<const double> y) {
  assert(a.size() == y.size() && b.size() == y.size());
  std::map<std::pair<size_t, size_t>, std::vector<double>> values;
  for (size_t i = 0; i < y.size(); ++i) values[{a[i], b[i]}].push_back(y[i]);
  std::vector<AnovaCell> cells;
  for (const auto& [levels, sample] : values) {
    const auto of_cell = moments(sample);
    cells.push_back({levels.first, levels.second,
                     of_cell.value_or(Moments{static_cast<int64_t>(sample.size()), sample[0], 0})});
  }
  return cells;
}

}  // namespace assay::stats
