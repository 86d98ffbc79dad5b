// A candidate's cells beside the base's.
#include <algorithm>

#include "base/add_once.h"
#include "base/text/listed.h"
#include "base/text/text.h"
#include "report/figures/judgement_figures.h"
#include "report/figures/parts.h"
#include "report/judgements/compare_cells.h"
#include "report/judgements/compare_verdict.h"
#include "report/sections/sections.h"

namespace assay {
namespace {

constexpr size_t kMostCells = 120;  // that a figure has room for

using Cells = std::vector<const ComparedCell*>;

Cells cells_of(const Comparison& of, Phase phase) {
  Cells cells;
  for (const ComparedCell& cell : of.cells) {
    if (cell.phase == phase && cell.stratum) cells.push_back(&cell);
  }
  return cells;
}

Findings arms_compared(const Comparison& of) {
  Findings all;
  all.strata = of.strata;
  for (const ComparedCell& cell : of.cells) {
    add_once(all.study.arms, cell.arm);
  }
  return all;
}

std::string cell_ratio_text(const ComparedCell& cell) {
  return ratio_text(cell.ratio, cell.ratio_interval, cell.ratio_range);
}

// "1 is slower, 2 are equivalent": each status that some cell has, in the order of the cells.
std::string statuses_text(const Cells& cells) {
  std::vector<std::pair<std::string, int64_t>> counts;
  for (const ComparedCell* cell : cells) {
    const std::string status =
        cell->verdict ? std::string(verdict_name(*cell->verdict)) : "not decided";
    const auto at = std::ranges::find(counts, status, &std::pair<std::string, int64_t>::first);
    if (at == counts.end()) {
      counts.emplace_back(status, 1);
    } else {
      ++at->second;
    }
  }
  std::vector<std::string> parts;
  for (const auto& [status, count] : counts) {
    parts.push_back(fmt::format("{} {} {}", count, count == 1 ? "is" : "are", status));
  }
  return listed(parts);
}

// "prefill: of 4 cells 1 is slower and 3 are equivalent; 1 alarm. The largest ratio: ...".
std::string comparison_finding(const Comparison& of, Phase phase, const Cells& cells) {
  const auto alarms = std::ranges::count_if(cells, [](const auto* cell) { return cell->alarm(); });
  const ComparedCell& slowest =
      **std::ranges::max_element(cells, {}, [](const auto* cell) { return cell->ratio; });
  return fmt::format("{}: of {} {}; {}. The largest ratio: {} takes {} of the base's time at {}",
                     phase_name(phase), counted(std::ssize(cells), "cell"), statuses_text(cells),
                     alarms == 0 ? "no alarm" : counted(alarms, "alarm"), slowest.arm,
                     cell_ratio_text(slowest), stratum_label(of.strata, *slowest.stratum));
}

plot::RowLine line_of_cell(const Findings& all, const Comparison& of, const ComparedCell& cell) {
  plot::RowLine line;
  line.style = arm_style(all, cell.arm);
  line.value = cell.ratio;
  line.interval = ratio_span(cell.ratio_interval);
  line.text = line_text(cell_ratio_text(cell) + (cell.alarm() ? " alarm" : ""));
  line.tip = fmt::format("{}, {}: {}", stratum_label(of.strata, *cell.stratum), cell.arm,
                         status_text(cell));
  return line;
}

// The cells' rows in the order of strata; if there are many, those with the largest ratios.
std::vector<StratumRow> rows_of_cells(const Findings& all, const Comparison& of, Cells cells) {
  if (cells.size() > kMostCells) {
    std::ranges::stable_sort(cells, std::greater(), [](const auto* cell) { return cell->ratio; });
    cells.resize(kMostCells);
  }
  std::ranges::stable_sort(cells, {}, [](const auto* cell) { return *cell->stratum; });
  std::vector<StratumRow> rows;
  for (const ComparedCell* cell : cells) {
    if (rows.empty() || rows.back().stratum != *cell->stratum) {
      rows.push_back({*cell->stratum, {row_label(stratum_label(of.strata, *cell->stratum)), {}}});
    }
    rows.back().row.lines.push_back(line_of_cell(all, of, *cell));
  }
  return rows;
}

Table cells_table(const Comparison& of, const Cells& cells) {
  Table table{.columns = columns_of("<stratum|<arm|ratio|interval|<status")};
  for (const ComparedCell* cell : cells) {
    table.rows.push_back(
        {stratum_label(of.strata, *cell->stratum), cell->arm, TableCell(cell->ratio, 4),
         spread_cell(cell->ratio_interval, cell->ratio_range), status_text(*cell)});
  }
  return table;
}

}  // namespace

std::optional<Figure> comparison_figure(const Comparison& of, Phase phase) {
  const Cells cells = cells_of(of, phase);
  if (cells.empty()) return std::nullopt;
  const Findings all = arms_compared(of);
  RowsFigure rows;
  rows.phase = phase_name(phase);
  rows.x_label = "ratio to the base (above 1: the candidate is slower)";
  rows.rule = plot::RuleAt{1, "as long as the base"};
  rows.rows = rows_of_cells(all, of, cells);
  Figure figure;
  figure.id = fmt::format("{}-compared", phase_name(phase));
  figure.finding = comparison_finding(of, phase, cells);
  figure.caption = fmt::format(
      "Each mark is a cell's mean time in the candidate over that in the base, with the 95 % "
      "interval. Right of 1 the candidate is slower. An alarm: slower by more than {:.3g} %, and "
      "by more than two runs of one program may differ.{}",
      of.options.margin * 100,
      cells.size() > kMostCells ? fmt::format(" The figure has the {} cells with the largest "
                                              "ratios; the table has all.",
                                              kMostCells)
                                : "");
  figure.legend = arm_legend(all, all.study.arms, false);
  draw_rows(all, rows, "Ratios of the candidate's times to the base's", figure);
  figure.tables.push_back(cells_table(of, cells));
  return figure;
}

}  // namespace assay
