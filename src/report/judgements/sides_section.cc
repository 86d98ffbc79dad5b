// Pairs of repetitions as a table.
#include "report/judgements/sides_section.h"

#include "report/judgements/compare_cells.h"
#include "report/sections/sections.h"

namespace assay {
namespace {

void add_row(const Comparison& c, const ComparedCell& cell, Table& table) {
  const bool one = cell.stratum.has_value();
  table.rows.push_back({TableCell::of(std::string(phase_name(cell.phase))),
                        TableCell::of(one ? stratum_label(c.strata, *cell.stratum)
                                          : fmt::format("all {}", cell.strata)),
                        TableCell::of(cell.arm), mean_cell(cell.base), mean_cell(cell.cand),
                        one ? TableCell::of(cell.base->processes) : TableCell::absent(),
                        signed_percent(cell.ratio - 1),
                        share_spread(cell.ratio_interval, cell.ratio_range), typical_cell(cell),
                        cell.typical
                            ? share_spread(cell.typical->ratio_interval, cell.typical->ratio_range)
                            : TableCell::absent(),
                        TableCell::of(status_text(cell))});
}

}  // namespace

ReportSection sides_section(const Comparison& c) {
  Table table{"",
              {{"phase", Align::kLeft},
               {"stratum", Align::kLeft},
               {"arm", Align::kLeft},
               {"base_ms"},
               {"cand_ms"},
               {"proc."},
               {"%diff"},
               {"95% interval"},
               {"typical"},
               {"its 95% interval"},
               {"status", Align::kLeft}},
              {}};
  for (const ComparedCell& cell : c.combined) add_row(c, cell, table);
  for (const ComparedCell& cell : c.cells) add_row(c, cell, table);
  ReportSection section{"Two programs side by side", {}, {std::move(table)}};
  section.lines.push_back(fmt::format("base: {}", c.base_name));
  section.lines.push_back(fmt::format("cand: {}", c.cand_name));
  const std::string load = load_text(c.base_load);
  if (!load.empty()) section.lines.push_back(fmt::format("measured at: {}", load));
  section.lines.emplace_back(
      "%diff above 0: the candidate is slower. proc.: pairs of worker processes, whose "
      "ratios give the intervals. typical: the same from the median pair of each process; "
      "a few long interruptions can decide the means, but not the medians.");
  return section;
}

}  // namespace assay
