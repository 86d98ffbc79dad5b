// Ratios to the baseline with their intervals, stratum by stratum.
#include <algorithm>

#include "base/text/listed.h"
#include "base/text/text.h"
#include "report/answers.h"
#include "report/figures/parts.h"
#include "report/fitting.h"
#include "report/sections/sections.h"

namespace assay {
namespace {

constexpr const char* kNotComparable = "not comparable";

std::string verdict_of(const Contrast& contrast) {
  return contrast.lost_strata > 0 ? "no verdict" : std::string(verdict_name(contrast.verdict));
}

// "static takes 0.86 [0.84, 0.90] of eager's time (faster)"; behind the first, without the words.
std::string arm_text(const Contrast& contrast, bool is_first) {
  return fmt::format("{} {}{}{} ({})", contrast.arm, is_first ? "takes " : "", ratio_text(contrast),
                     is_first ? fmt::format(" of {}'s time", contrast.baseline) : "",
                     verdict_of(contrast));
}

std::string ratio_finding(const Findings& findings, Phase phase) {
  std::vector<const Contrast*> shown;
  for (const Contrast& contrast : findings.combined) {
    if (contrast.phase == phase) shown.push_back(&contrast);
  }
  if (shown.empty()) {
    for (const Contrast& contrast : findings.contrasts) {
      if (contrast.phase == phase) shown.push_back(&contrast);
    }
  }
  std::ranges::stable_sort(shown, {}, [](const Contrast* c) { return c->ratio; });
  std::vector<std::string> parts;
  for (const Contrast* contrast : shown) parts.push_back(arm_text(*contrast, parts.empty()));
  return fmt::format("{}: {}", phase_name(phase), listed(parts, kMostListed));
}

plot::RowLine line_of(const Findings& findings, const Contrast& contrast,
                      const std::string& where) {
  plot::RowLine line;
  line.style = arm_style(findings, contrast.arm);
  line.value = contrast.ratio;
  line.interval = ratio_span(contrast.ratio_interval);
  line.text = line_text(ratio_text(contrast));
  line.tip = fmt::format("{}, {}: {}, {} and {} rows", where, contrast.arm, verdict_of(contrast),
                         contrast.n_arm, contrast.n_baseline);
  return line;
}

plot::RowLine left_out_line(const Findings& findings, const NotComparable& entry) {
  plot::RowLine line;
  line.style = arm_style(findings, entry.arm);
  line.text = kNotComparable;
  line.tip = join(entry.reasons, "; ");
  return line;
}

bool too_few(const Findings& findings, Phase phase) {
  return std::ranges::any_of(findings.contrasts, [&](const Contrast& contrast) {
    return contrast.phase == phase && contrast.ratio_interval &&
           shows_nothing(*contrast.ratio_interval);
  });
}

bool of_few_processes(const Findings& findings, Phase phase) {
  return std::ranges::any_of(findings.contrasts, [&](const Contrast& contrast) {
    return contrast.phase == phase && contrast.ratio_process_range;
  });
}

void in_order_of_arms(plot::PlotRow& row) {
  std::ranges::stable_sort(row.lines, {}, [](const auto& line) { return line.style.number; });
}

std::vector<StratumRow> rows_of(const Findings& findings, Phase phase,
                                std::vector<std::string>& arms) {
  std::vector<StratumRow> rows;
  for (size_t stratum = 0; stratum < findings.strata.size(); ++stratum) {
    if (findings.strata[stratum].phase != phase) continue;
    const std::string label = stratum_label(findings, stratum);
    StratumRow row{stratum, {row_label(label), {}}};
    for (const Contrast& contrast :
         std::ranges::equal_range(findings.contrasts, stratum, {},
                                  [](const Contrast& c) { return c.stratum.value_or(0); })) {
      row.row.lines.push_back(line_of(findings, contrast, label));
      arms.push_back(contrast.arm);
    }
    for (const NotComparable& entry : findings.not_comparable) {
      if (entry.stratum != stratum || entry.arm == findings.study.baseline) continue;
      row.row.lines.push_back(left_out_line(findings, entry));
      arms.push_back(entry.arm);
    }
    in_order_of_arms(row.row);
    if (!row.row.lines.empty()) rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

std::optional<Figure> ratio_figure(const Findings& findings, Phase phase) {
  RowsFigure rows;
  rows.phase = phase_name(phase);
  rows.x_label =
      fmt::format("ratio to {} (below 1: faster)", shortened(findings.study.baseline, 20));
  rows.rule = plot::RuleAt{1, "as long as the baseline"};
  std::vector<std::string> arms;
  rows.rows = rows_of(findings, phase, arms);
  // If no arm can be compared there is no scale to draw on; the verdict says why.
  if (std::ranges::none_of(findings.contrasts,
                           [&](const Contrast& contrast) { return contrast.phase == phase; })) {
    return std::nullopt;
  }
  plot::PlotRow all{"all strata (geometric mean)", {}};
  for (const Contrast& contrast : findings.combined) {
    if (contrast.phase == phase) all.lines.push_back(line_of(findings, contrast, "all strata"));
  }
  in_order_of_arms(all);
  // The mean of one stratum is that stratum.
  if (!all.lines.empty() && rows.rows.size() > 1) rows.head.push_back(std::move(all));
  Figure figure;
  figure.id = fmt::format("{}-ratios", phase_name(phase));
  figure.finding = ratio_finding(findings, phase);
  figure.caption = fmt::format(
      "Each mark is an arm's mean time over the baseline's on one stratum, the bar its "
      "95 % interval. Left of 1 the arm is faster than {}. A bar that "
      "crosses 1 is no evidence of a difference; \"{}\" means that rows were lost "
      "or the outputs differ.{}{} All panels have the same scale.",
      findings.study.baseline, kNotComparable,
      too_few(findings, phase) ? " \"too few to tell\": the interval, wider than tenfold, is that "
                                 "of so few processes or "
                                 "rows that it shows nothing and isn't drawn; the table has it."
                               : "",
      of_few_processes(findings, phase) ? " " + range_meaning() + ". It isn't drawn." : "");
  figure.legend = arm_legend(findings, arms, false);
  draw_rows(findings, rows, fmt::format("Ratios to {} with intervals", findings.study.baseline),
            figure);
  // The page has room for no more of 400 strata; report.md has every table.
  figure.tables = contrast_section(findings, phase, Detail::kSummary).tables;
  Table effects = effect_table(findings, phase);
  if (!effects.rows.empty()) figure.tables.push_back(std::move(effects));
  return figure;
}

}  // namespace assay
