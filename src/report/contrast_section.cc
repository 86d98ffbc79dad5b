// Contrasts of one phase with the baseline: combined, by stratum, and what can't be compared.
#include <set>

#include "base/text.h"
#include "report/sections.h"

namespace assay {
namespace {

std::string verdict_counts(const Contrast& contrast) {
  std::vector<std::string> parts;
  for (const auto& [verdict, count] : contrast.stratum_verdicts) {
    parts.push_back(fmt::format("{} {}", count, verdict_name(verdict)));
  }
  return join(parts, ", ");
}

// "4", "1 of 5": strata that the figure is of, and those that were lost.
std::string strata_text(const Contrast& contrast) {
  if (contrast.lost_strata == 0) return std::to_string(contrast.strata);
  return fmt::format("{} of {}", contrast.strata, contrast.strata + contrast.lost_strata);
}

std::string combined_verdict(const Contrast& contrast) {
  if (contrast.lost_strata == 0) return std::string(verdict_name(contrast.verdict));
  return fmt::format("none: {} lost", contrast.lost_strata);
}

Table combined_table(const Findings& findings, Phase phase) {
  Table table{"Combined over strata",
              {{"arm", Align::kLeft},
               {"strata"},
               {"ratio"},
               {"95% interval"},
               {"p_holm"},
               {"tost_p_holm"},
               {"mde"},
               {"verdict", Align::kLeft},
               {"by stratum", Align::kLeft}},
              {}};
  for (const Contrast& c : findings.combined) {
    if (c.phase != phase) continue;
    table.rows.push_back({TableCell::of(arm_label(findings, c.arm, phase)),
                          TableCell::of(strata_text(c)), TableCell::of(c.ratio),
                          interval_cell(c.ratio_interval), p_holm_cell(c.p_holm),
                          p_holm_cell(c.tost_p_holm), percent_cell(c.minimum_detectable),
                          TableCell::of(combined_verdict(c)), TableCell::of(verdict_counts(c))});
  }
  return table;
}

Table stratum_table(const Findings& findings, Phase phase) {
  Table table{"By stratum",
              {{"stratum", Align::kLeft},
               {"arm", Align::kLeft},
               {"n"},
               {"ratio"},
               {"95% interval"},
               {"p_holm"},
               {"tost_p_holm"},
               {"g"},
               {"A"},
               {"mde"},
               {"verdict", Align::kLeft}},
              {}};
  for (const Contrast& c : findings.contrasts) {
    if (c.phase != phase) continue;
    table.rows.push_back(
        {TableCell::of(stratum_label(findings, *c.stratum)),
         TableCell::of(arm_label(findings, c.arm, *c.stratum)),
         TableCell::of(fmt::format("{}/{}", c.n_arm, c.n_baseline)), TableCell::of(c.ratio),
         interval_cell(c.ratio_interval), p_holm_cell(c.p_holm), p_holm_cell(c.tost_p_holm),
         TableCell::of(c.hedges_g, 3), c.rank ? TableCell::of(c.rank->a, 3) : TableCell::absent(),
         percent_cell(c.minimum_detectable), TableCell::of(std::string(verdict_name(c.verdict)))});
  }
  return table;
}

// What the summary has no room for.
Table effect_table(const Findings& findings, Phase phase) {
  Table table{
      "Differences and effect sizes (t and df: of pairs or Welch's, of the log ratio where no "
      "sample "
      "of one arm is among the other's, the error times widening where units depend on one "
      "another; "
      "typical: the ratio of typical calls; d: Cohen; U: Mann-Whitney)",
      {{"stratum", Align::kLeft},
       {"arm", Align::kLeft},
       {"difference_ms"},
       {"95% interval"},
       {"median_ratio"},
       {"typical"},
       {"95% interval"},
       {"units"},
       {"widening"},
       {"t"},
       {"df"},
       {"p"},
       {"d"},
       {"g"},
       {"U"},
       {"p_U"},
       {"A"}},
      {}};
  for (const Contrast& c : findings.contrasts) {
    if (c.phase != phase) continue;
    std::vector<TableCell> row = {
        TableCell::of(stratum_label(findings, *c.stratum)),
        TableCell::of(arm_label(findings, c.arm, *c.stratum)), TableCell::of(c.difference_ms),
        interval_cell(c.difference_interval_ms), TableCell::of(c.median_ratio)};
    const auto absent = TableCell::absent();
    row.push_back(c.typical ? TableCell::of(c.typical->ratio) : absent);
    row.push_back(interval_cell(c.typical ? std::optional(c.typical->interval) : std::nullopt));
    row.push_back(TableCell::of(
        fmt::format("{}/{} {}", c.units_arm, c.units_baseline, contrast_unit_name(c.unit))));
    row.push_back(TableCell::of(c.widening.error, 3));
    row.push_back(c.test ? TableCell::of(c.test->statistic) : absent);
    row.push_back(c.test ? TableCell::of(c.test->df) : absent);
    row.push_back(c.test ? p_cell(c.test->p, c.test->log_p) : absent);
    row.push_back(TableCell::of(c.cohen_d, 3));
    row.push_back(TableCell::of(c.hedges_g, 3));
    row.push_back(c.rank ? TableCell::of(c.rank->u) : absent);
    row.push_back(c.rank ? p_cell(c.rank->p, c.rank->log_p) : absent);
    row.push_back(c.rank ? TableCell::of(c.rank->a, 3) : absent);
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table not_comparable_table(const Findings& findings, Phase phase) {
  Table table{"Not comparable",
              {{"stratum", Align::kLeft}, {"arm", Align::kLeft}, {"reason", Align::kLeft}},
              {}};
  for (const NotComparable& entry : findings.not_comparable) {
    if (findings.strata[entry.stratum].phase != phase) continue;
    table.rows.push_back({TableCell::of(stratum_label(findings, entry.stratum)),
                          TableCell::of(arm_label(findings, entry.arm, entry.stratum)),
                          TableCell::of(join(entry.reasons, "; "))});
  }
  return table;
}

// What the phase's contrasts took for one observation, and whether arms were paired by it.
std::string units_text(const Findings& findings, Phase phase) {
  std::set<std::string> texts;
  int64_t left_out = 0;
  for (const Contrast& c : findings.contrasts) {
    if (c.phase != phase) continue;
    left_out += c.left_out;
    const bool processes = c.unit == ContrastUnit::kProcesses;
    if (c.any_look) {
      texts.insert(
          "The run was looked at after every round of worker processes: ratios are "
          "geometric means over rounds, their intervals hold at any look and together for "
          "all pairs of a stratum, and there are no tests.");
      continue;
    }
    if (c.paired) {
      texts.insert(processes
                       ? "Arms are paired by rounds of worker processes: what the machine did "
                         "to both in a round cancels, and the error has the degrees of freedom "
                         "of the rounds."
                       : "Arms are paired by repetition: what the machine did to both in a "
                         "repetition cancels.");
    } else {
      texts.insert(processes ? "Each process of an arm is one observation; arms are not paired "
                               "(Welch), because the order was not interleaved."
                             : "Each row is one observation; arms are not paired (Welch), because "
                               "the order was not interleaved.");
    }
  }
  std::string text = join(std::vector<std::string>(texts.begin(), texts.end()), " ");
  if (left_out > 0) {
    text += fmt::format(" {} that only one arm of a pair has {} left out.",
                        left_out == 1 ? "1 repetition" : fmt::format("{} repetitions", left_out),
                        left_out == 1 ? "is" : "are");
  }
  return text;
}

}  // namespace

ReportSection contrast_section(const Findings& findings, Phase phase, Detail detail) {
  const AnalysisOptions& options = findings.options;
  ReportSection section{
      fmt::format("Contrasts of {} with {}", phase_name(phase), findings.study.baseline), {}, {}};
  section.figures = {fmt::format("{}-ratios", phase_name(phase))};
  section.lines.push_back(fmt::format(
      "ratio: arm / {} of means, below 1 is faster; percentile bootstrap interval, {} resamples. "
      "Combined: geometric mean of the strata's ratios, resampled within strata. Wider where "
      "repetitions depend on one another. {}",
      findings.study.baseline, options.resamples, units_text(findings, phase)));
  section.lines.push_back(fmt::format(
      "p: the t test of these units, of the log ratio where samples don't overlap (combined: of "
      "the "
      "mean log ratio); "
      "tost_p: equivalence within {:.0f} %; both Holm-adjusted over this table. g: Hedges; A: "
      "Vargha-Delaney, 0.5 is no difference; mde: "
      "difference found with {:.0f} % power.",
      options.margin * 100, options.power * 100));
  for (Table& table :
       std::vector<Table>{combined_table(findings, phase), stratum_table(findings, phase),
                          not_comparable_table(findings, phase)}) {
    if (!table.rows.empty()) section.tables.push_back(std::move(table));
  }
  if (section.tables.empty()) section.lines = {"No other arm was measured."};
  Table effects = effect_table(findings, phase);
  if (detail == Detail::kFull && !effects.rows.empty()) {
    section.tables.push_back(std::move(effects));
  }
  return section;
}

}  // namespace assay
