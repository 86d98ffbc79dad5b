// A comparison's figures as table cells.
#include "report/compare_cells.h"

#include "report/compare_verdict.h"

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
  return side ? TableCell::of(side->mean_ms) : TableCell::absent();
}

TableCell share_interval(const std::optional<stats::Interval>& interval) {
  if (!interval) return TableCell::absent();
  return {Json::array({interval->low - 1, interval->high - 1}),
          fmt::format("[{}, {}] %", signed_percent_text(interval->low - 1),
                      signed_percent_text(interval->high - 1))};
}

}  // namespace assay
