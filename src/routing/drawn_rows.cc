// Rows of resampled units.
#include "routing/drawn_rows.h"

#include <algorithm>

namespace assay {
namespace {

DrawnRows drawn_rows(const std::vector<ReplayRow>& rows, const std::vector<size_t>& lost,
                     const std::vector<int>& times) {
  DrawnRows drawn;
  int64_t lost_rows = 0;
  for (const ReplayRow& row : rows) drawn.rows.insert(drawn.rows.end(), times[row.unit], row);
  for (const size_t unit : lost) lost_rows += times[unit];
  if (drawn.rows.empty() && lost_rows == 0) lost_rows = std::ssize(lost);
  if (drawn.rows.empty()) drawn.rows = rows;
  const int64_t all = lost_rows + std::ssize(drawn.rows);
  if (all > 0) drawn.lost = static_cast<double>(lost_rows) / static_cast<double>(all);
  std::ranges::stable_sort(drawn.rows, {}, &ReplayRow::ms);
  return drawn;
}

}  // namespace

DrawnCell drawn_cell(const ReplayCell& cell, const std::vector<int>& times) {
  DrawnCell drawn;
  drawn.warm = drawn_rows(cell.warm, cell.lost_warm, times);
  drawn.first = drawn_rows(cell.first, cell.lost_cold, times);
  drawn.fell_back = drawn_rows(cell.fell_back, {}, times);
  for (const ReplayRow& row : drawn.warm.rows) drawn.mean_ms += row.ms;
  drawn.mean_ms /= static_cast<double>(std::max<size_t>(1, drawn.warm.rows.size()));
  return drawn;
}

const ReplayRow& at_quantile(const std::vector<ReplayRow>& rows, double u) {
  const auto at = static_cast<size_t>(u * static_cast<double>(rows.size()));
  return rows[std::min(at, rows.size() - 1)];
}

}  // namespace assay
