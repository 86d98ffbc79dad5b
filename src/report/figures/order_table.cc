// The numbers behind the figure of latencies over order: every mark, in few characters.
#include <algorithm>
#include <limits>
#include <map>

#include "base/text/text.h"
#include "report/figures/parts.h"
#include "report/sections/sections.h"

namespace assay {
namespace {

// "12: 0.6837", "12: 0.6837 cold", "12: lost (OutOfMemoryError)".
std::string point_text(const PlottedRow& row) {
  std::string text = fmt::format("{}:", row.rank);
  if (row.latency_ms) text += " " + format_significant(*row.latency_ms);
  if (row.mark != RowMark::kWarm) text += fmt::format(" {}", row_mark_name(row.mark));
  if (!row.error_class.empty()) text += fmt::format(" ({})", row.error_class);
  return text;
}

// The rows of all arms that share a repetition: under an interleaved order they ran together.
struct RepetitionLine {
  int64_t first = std::numeric_limits<int64_t>::max();  // the lowest rank
  std::vector<std::string> cells;
};

PointGroup point_group(const Findings& findings, const StratumGroups& of,
                       const std::vector<std::string>& arms) {
  std::map<std::pair<size_t, int64_t>, RepetitionLine> lines;  // by cell of its arm, and repetition
  for (const PlottedGroup& group : of.groups) {
    const auto column = static_cast<size_t>(std::ranges::find(arms, group.arm) - arms.begin()) + 1;
    for (const PlottedRow& row : group.order) {
      RepetitionLine& line = lines[{row.cell, row.repetition}];
      line.cells.resize(arms.size() + 1);
      line.first = std::min(line.first, row.rank);
      // In a merged bundle, the number of the arm's cell stands behind the repetition.
      line.cells[0] = row.cell == 0 ? std::to_string(row.repetition)
                                    : fmt::format("{} ({})", row.repetition, row.cell + 1);
      line.cells[column] = point_text(row);
    }
  }
  std::vector<RepetitionLine> in_order;
  for (auto& [key, line] : lines) in_order.push_back(std::move(line));
  std::ranges::stable_sort(in_order, {}, &RepetitionLine::first);
  PointGroup out{stratum_label(findings, of.stratum), {}};
  for (RepetitionLine& line : in_order) out.rows.push_back(std::move(line.cells));
  return out;
}

}  // namespace

PointTable order_table(const Findings& findings, std::span<const StratumGroups> strata) {
  std::vector<std::string> arms;
  for (const std::string& arm : findings.study.arms) {
    const bool is_there = std::ranges::any_of(strata, [&](const StratumGroups& of) {
      return std::ranges::find(of.groups, arm, &PlottedGroup::arm) != of.groups.end();
    });
    if (is_there) arms.push_back(arm);
  }
  PointTable table{"Each mark by its repetition and arm: place in the order of the run, and ms",
                   {"repetition"},
                   {}};
  table.columns.insert(table.columns.end(), arms.begin(), arms.end());
  for (const StratumGroups& of : strata) table.groups.push_back(point_group(findings, of, arms));
  return table;
}

}  // namespace assay
