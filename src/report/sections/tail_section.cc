// Tails of one phase's arms side by side, and whether each ran as it is labelled.
#include <algorithm>

#include "base/text/text.h"
#include "report/answers.h"
#include "report/sections/sections.h"

namespace assay {
namespace {

std::string ran_as(const Tail& tail) {
  const std::string name(execution_name(tail.execution));
  return tail.ran_eager > 0 ? fmt::format("{} {}/{}", name, tail.ran_eager, tail.n) : name;
}

std::vector<TableCell> tail_row(const Findings& findings, const Tail& tail) {
  return row_of(stratum_label(findings, tail.stratum), tail.arm, ran_as(tail), tail.p50, tail.high,
                TableCell(tail.high / tail.p50, 3), tail.slow, tail.slow_recompiled,
                tail.high_without, tail.p50_ratio,
                spread_cell(tail.ratio_interval, tail.ratio_process_range));
}

}  // namespace

bool has_tails(const Findings& findings, Phase phase) {
  return std::ranges::any_of(findings.tails, [&](const Tail& tail) {
    return findings.strata[tail.stratum].phase == phase;
  });
}

ReportSection tail_section(const Findings& findings, Phase phase) {
  ReportSection section{fmt::format("Compilation and tails of {}", phase_name(phase)), {}, {}};
  section.figures = {fmt::format("{}-tails", phase_name(phase))};
  bool maxima = false;
  bool ranges = false;
  Table table{.columns =
                  columns_of("<stratum|<arm|<ran as|p50|high|high/p50|slow|rec.|without|p50 ratio|"
                             "95% interval")};
  for (const Tail& tail : findings.tails) {
    if (findings.strata[tail.stratum].phase != phase) continue;
    maxima = maxima || tail.high_is_max;
    ranges = ranges || tail.ratio_process_range;
    table.rows.push_back(tail_row(findings, tail));
  }
  section.lines.push_back(fmt::format(
      "high: {} in ms; slow: samples above {:.0f} times p50, rec.: how many of those carry a "
      "recompile, without: high of the samples that carry none. p50 ratio: to {}{}.",
      maxima ? "the largest sample (p99 needs 100 rows)" : "p99", kSlowFactor,
      findings.study.baseline, ranges ? "; " + range_meaning() : ", percentile bootstrap"));
  section.tables.push_back(std::move(table));
  return section;
}

}  // namespace assay
