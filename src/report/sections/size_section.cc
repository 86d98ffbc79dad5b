// Arms along model size: analysis of variance, and where an arm starts or stops to pay.
#include "base/text/counts.h"
#include "report/sections/sections.h"

namespace assay {
namespace {

TableCell p_of(const std::optional<double>& p, const std::optional<double>& log_p) {
  return p && log_p ? p_cell(*p, *log_p) : TableCell::absent();
}

Table anova_table(const Findings& findings) {
  Table table{
      "Analysis of variance of ln(ms): arm, model, and whether the arm matters more for some "
      "models (type II; eta: share of the variation, partial)",
      columns_of("<condition|models|F_arm|p_arm|eta_arm|F_model|F_both|p_both_holm|"
                 "eta_both"),
      {}};
  for (const SizeAnalysis& size : findings.sizes) {
    if (!size.type2) continue;
    const stats::TwoWayAnova& anova = *size.type2;
    table.rows.push_back({size_place(findings, size), static_cast<int64_t>(size.models.size()),
                          TableCell(anova.a.f, 3), p_of(anova.a.p, anova.a.log_p),
                          TableCell(anova.a.partial_eta_squared, 3), TableCell(anova.b.f, 3),
                          TableCell(anova.interaction.f, 3),
                          size.interaction_p_holm
                              ? p_of(size.interaction_p_holm, anova.interaction.log_p)
                              : TableCell::absent(),
                          TableCell(anova.interaction.partial_eta_squared, 3)});
  }
  return table;
}

std::string reach_text(const std::optional<Reach>& reach) {
  if (!reach) return "";
  const auto end = [](const std::optional<double>& bound) {
    return bound ? format_count(*bound) : std::string("none");
  };
  return fmt::format("[{}, {}]", end(reach->low), end(reach->high));
}

TableCell size_cell(const std::optional<double>& size) {
  return size ? TableCell{*size, format_count(*size)} : TableCell::absent();
}

Table crossover_table(const Findings& findings) {
  Table table{fmt::format("Ratio to {} by model size, and the size ({}) at which it crosses 1",
                          findings.study.baseline, findings.size_unit),
              columns_of("<condition|<arm|<ratios|crossover|95% interval"),
              {}};
  for (const SizeAnalysis& size : findings.sizes) {
    for (const SizeCrossover& crossover : size.crossovers) {
      std::vector<std::string> ratios;
      for (const SizeRatio& ratio : crossover.ratios) {
        ratios.push_back(format_significant(ratio.ratio, 3));
      }
      const std::string reach = reach_text(crossover.interval);
      table.rows.push_back({size_place(findings, size), crossover.arm, join(ratios, " "),
                            size_cell(crossover.crossover), TableCell::if_any(reach)});
    }
  }
  return table;
}

}  // namespace

ReportSection size_section(const Findings& findings) {
  ReportSection section{"Model size", {}, {}};
  section.figures = {"model-size"};
  section.lines.emplace_back(
      "Each row is one condition (phase, prompt, new tokens, batch) and covers the models and "
      "arms that are comparable there. p_both_holm: adjusted by Holm over the conditions of a "
      "phase.");
  for (Table& table : std::vector<Table>{anova_table(findings), crossover_table(findings)}) {
    if (!table.rows.empty()) section.tables.push_back(std::move(table));
  }
  return section;
}

}  // namespace assay
