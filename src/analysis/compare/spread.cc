// Scatter of a comparison's cells.
#include "analysis/compare/spread.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

namespace assay {
namespace {

// Expected squared deviation in units of an error that has `df` degrees of freedom.
double expected_square(double df) {
  const double counts = std::max(df, 3.0);
  return counts / (counts - 2);
}

// Sums over groups of the estimate's parts.
struct Parts {
  double q = 0;         // squared deviations in units of the errors
  double expected = 0;  // of q, if nothing but the errors made it
  double scale = 0;     // growth of q per unit of the spread
  double squares = 0;   // of the cells' shares of `scale`
  double df = 0;

  void add(std::span<const CellRatio* const> group) {
    if (group.size() < 2) return;
    double weights = 0;
    double sum = 0;
    for (const CellRatio* cell : group) {
      const double weight = 1 / (cell->error.value * cell->error.value);
      weights += weight;
      sum += weight * cell->log_ratio;
    }
    for (const CellRatio* cell : group) {
      const double weight = 1 / (cell->error.value * cell->error.value);
      const double off = cell->log_ratio - sum / weights;
      const double rest = 1 - weight / weights;
      q += weight * off * off;
      expected += rest * expected_square(cell->error.df);
      scale += weight * rest;
      squares += weight * rest * weight * rest;
    }
    df += static_cast<double>(group.size() - 1);
  }
};

}  // namespace

std::optional<Spread> spread_of(std::span<const CellRatio> cells, std::optional<size_t> without) {
  std::map<size_t, std::vector<const CellRatio*>> groups;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (i != without) groups[cells[i].group].push_back(&cells[i]);
  }
  Parts parts;
  for (const auto& [group, members] : groups) parts.add(members);
  if (!(parts.scale > 0) || !std::isfinite(parts.scale)) return std::nullopt;
  // A cell whose error is far below the others' decides alone.
  const double cells_that_count = parts.scale * parts.scale / parts.squares;
  return Spread{std::max(0.0, parts.q - parts.expected) / parts.scale, parts.q / parts.scale,
                std::min(parts.df, cells_that_count)};
}

stats::StandardError with_spread(const stats::StandardError& error,
                                 const std::optional<Spread>& spread, size_t cells) {
  if (!spread || !(spread->square > 0)) return error;
  const double own = error.value * error.value;
  // With few cells the estimate is below the truth more often than above it.
  const double between = spread->square * (1 + 1 / spread->df) / static_cast<double>(cells);
  const double raw = spread->raw / static_cast<double>(cells);
  const double total = own + between;
  return {std::sqrt(total), total * total / (own * own / error.df + between * raw / spread->df)};
}

}  // namespace assay
