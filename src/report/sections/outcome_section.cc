// Crash rates: the outcome of every attempt, before any latency.
#include "base/text/text.h"
#include "report/sections/sections.h"

namespace assay {
namespace {

std::string counts(const std::map<std::string, int64_t>& by_name) {
  std::vector<std::string> parts;
  for (const auto& [name, count] : by_name) parts.push_back(fmt::format("{} {}", count, name));
  return join(parts, ", ");
}

TableCell share_cell(const std::optional<stats::Interval>& bounds) {
  if (!bounds) return TableCell::absent();
  return {Json::array({bounds->low, bounds->high}),
          fmt::format("[{:.1f}, {:.1f}] %", bounds->low * 100, bounds->high * 100)};
}

// "1/7 [3, 51] %".
TableCell died_cell(const OutcomeCounts& of) {
  std::string text = fmt::format("{}/{}", of.died, of.processes);
  if (of.died > 0 && of.died_interval) {
    text += fmt::format(" [{:.0f}, {:.0f}] %", of.died_interval->low * 100,
                        of.died_interval->high * 100);
  }
  return TableCell(std::move(text));
}

Table make_table(std::string title) {
  return {std::move(title),
          columns_of("<phase|<stratum|<arm|attempted|lost|95% interval|died|<status|"
                     "<error_class"),
          {}};
}

}  // namespace

std::string no_loss(const Findings& findings) {
  int64_t attempted = 0;
  for (const OutcomeCounts& outcome : findings.outcomes) {
    if (outcome.failed > 0 || outcome.died > 0) return "";
    if (!outcome.stratum) attempted += outcome.attempted;
  }
  if (attempted == 0) return "";
  return attempted == 1 ? "No row was lost: the one attempt is ok"
                        : fmt::format("No row was lost: all {} attempts are ok", attempted);
}

ReportSection outcome_section(const Findings& findings, Detail detail) {
  ReportSection section{"Crash rates", {}, {}};
  if (const std::string none = no_loss(findings); !none.empty()) {
    section.lines.push_back(none + ", warm-ups included.");
    return section;
  }
  section.figures = {"losses"};
  section.lines.emplace_back(
      "attempted: rows, warm-ups included. lost: rows whose status is not ok. died: processes that "
      "crashed or timed out, of all that served the arm. The intervals of both shares are "
      "Wilson's.");
  Table table = make_table("");
  Table by_stratum = make_table("By stratum");
  for (const OutcomeCounts& outcome : findings.outcomes) {
    if (outcome.stratum && outcome.failed == 0 && detail == Detail::kSummary) continue;
    Table& target = outcome.stratum ? by_stratum : table;
    target.rows.push_back(
        {phase_name(outcome.phase),
         TableCell(outcome.stratum ? stratum_label(findings, *outcome.stratum) : "all"),
         TableCell(outcome.stratum ? arm_label(findings, outcome.arm, *outcome.stratum)
                                   : arm_label(findings, outcome.arm, outcome.phase)),
         outcome.attempted, outcome.failed, share_cell(outcome.failed_interval), died_cell(outcome),
         TableCell::if_any(counts(outcome.by_status)),
         TableCell::if_any(counts(outcome.by_error_class))});
  }
  section.tables.push_back(std::move(table));
  if (!by_stratum.rows.empty()) section.tables.push_back(std::move(by_stratum));
  return section;
}

}  // namespace assay
