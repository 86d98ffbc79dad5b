// The section on weights that aren't the model's own: the distance of their predictions from its.
#include "analysis/findings/spread_text.h"
#include "base/text/text.h"
#include "report/sections/sections.h"

namespace assay {
namespace {

// "0.031 [0.028, 0.034]"
TableCell figure_cell(const QualityFigure& figure, double scale = 1) {
  std::optional<stats::Interval> interval;
  if (figure.interval) interval = {scale * figure.interval->low, scale * figure.interval->high};
  return TableCell(format_significant(scale * figure.value, 3) +
                   spread_text(interval, std::nullopt, 3));
}

}  // namespace

ReportSection quality_section(const Findings& findings) {
  ReportSection section{"Quality of weights that aren't the model's own", {}, {}};
  section.lines.emplace_back(
      "Both are fed one text, and predict each next token of it. KL: of the model's own "
      "distribution from the arm's, nats a token; p99: of the position that 1 % exceed; same "
      "choice: positions where both find one token the likeliest; perplexity: the arm's over the "
      "model's own. 95 % intervals, by windows of text.");
  Table table{.columns = columns_of(
                  "<model|<arm|<weights|<text|windows|positions|=KL|=KL p99|=same choice %|"
                  "=perplexity")};
  for (const ArmQuality& one : findings.qualities) {
    const ModelQuality& quality = one.beside_model;
    if (!quality.problem.empty()) {
      section.lines.push_back(fmt::format("{} on {}: {}.", one.arm, one.model, quality.problem));
      continue;
    }
    table.rows.push_back(
        {one.model, one.arm, quality.model, quality.text, TableCell(quality.windows),
         TableCell(quality.positions), figure_cell(quality.kl_mean), figure_cell(quality.kl_p99),
         figure_cell(quality.same_choice, 100), figure_cell(exp_of(quality.nll_change))});
  }
  if (!table.rows.empty()) section.tables.push_back(std::move(table));
  return section;
}

}  // namespace assay
