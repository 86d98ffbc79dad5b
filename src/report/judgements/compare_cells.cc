// A comparison's figures as table cells.
#include "report/judgements/compare_cells.h"

#include "report/judgements/compare_verdict.h"

namespace assay {

std::string status_text(const ComparedCell& cell) {
  if (!cell.verdict) return "not decided";
  std::string text(verdict_name(*cell.verdict));
  if (cell.regression) return "SLOWER";
  if (cell.alarm()) return "SLOWER (typical call)";
  if (cell.verdict == Verdict::kSlower) text += " (no alarm)";
  return text;
}

TableCell signed_percent(double share) {
  return {share, signed_percent_text(share) + " %"};
}

TableCell typical_cell(const ComparedCell& cell) {
  return cell.typical ? signed_percent(cell.typical->ratio - 1) : TableCell::absent();
}

TableCell mean_cell(const std::optional<ComparedSide>& side) {
  return side ? TableCell(side->mean_ms) : TableCell::absent();
}

std::string share_spread_text(const std::optional<stats::Interval>& interval,
                              const std::optional<stats::Interval>& range) {
  const auto share = [](double ratio) { return signed_percent_text(ratio - 1); };
  if (interval) return fmt::format("[{}, {}]", share(interval->low), share(interval->high));
  if (range) return fmt::format("range {} to {}", share(range->low), share(range->high));
  return "";
}

TableCell share_spread(const std::optional<stats::Interval>& interval,
                       const std::optional<stats::Interval>& range) {
  const auto& ends = interval ? interval : range;
  if (!ends) return TableCell::absent();
  return {Json::array({ends->low - 1, ends->high - 1}), share_spread_text(interval, range) + " %"};
}

}  // namespace assay
