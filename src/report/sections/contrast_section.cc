// Contrasts of one phase with the baseline: combined, by stratum, and the arms that can't be
// compared.
#include <algorithm>
#include <map>

#include "base/text/text.h"
#include "report/answers.h"
#include "report/sections/sections.h"

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
              columns_of("<arm|strata|ratio|95% interval|typical|95% interval|<verdict|"
                         "<by stratum"),
              {}};
  for (const Contrast& c : findings.combined) {
    if (c.phase != phase) continue;
    table.rows.push_back({arm_label(findings, c.arm, phase), strata_text(c), c.ratio,
                          spread_cell(c.ratio_interval, c.ratio_process_range),
                          cell_of(c.typical, &SpreadRatio::ratio), spread_cell(c.typical),
                          combined_verdict(c), verdict_counts(c)});
  }
  return table;
}

Table combined_tests_table(const Findings& findings, Phase phase) {
  Table table{
      "Tests of the combined ratios", columns_of("<arm|widening|t|df|p_holm|tost_p_holm|mde"), {}};
  for (const Contrast& c : findings.combined) {
    if (c.phase != phase) continue;
    table.rows.push_back({arm_label(findings, c.arm, phase), TableCell(c.widening.error, 3),
                          cell_of(c.test, &stats::TestResult::statistic),
                          cell_of(c.test, &stats::TestResult::df), p_holm_cell(c.p_holm),
                          p_holm_cell(c.tost_p_holm), percent_cell(c.minimum_detectable)});
  }
  return table;
}

Table stratum_table(const Findings& findings, Phase phase) {
  Table table{"By stratum",
              columns_of("<stratum|<arm|n|ratio|95% interval|p_holm|tost_p_holm|g|A|mde|<verdict"),
              {}};
  for (const Contrast& c : findings.contrasts) {
    if (c.phase != phase) continue;
    table.rows.push_back(
        {stratum_label(findings, *c.stratum), arm_label(findings, c.arm, *c.stratum),
         fmt::format("{}/{}", c.n_arm, c.n_baseline), c.ratio,
         spread_cell(c.ratio_interval, c.ratio_process_range), p_holm_cell(c.p_holm),
         p_holm_cell(c.tost_p_holm), TableCell(c.hedges_g, 3), TableCell(c.vargha_delaney_a, 3),
         percent_cell(c.minimum_detectable), verdict_name(c.verdict)});
  }
  return table;
}

Table difference_table(const Findings& findings, Phase phase) {
  Table table{"Differences of means",
              columns_of("<stratum|<arm|difference_ms|95% interval|widening|t|df|p"),
              {}};
  for (const Contrast& c : findings.contrasts) {
    if (c.phase != phase) continue;
    table.rows.push_back(
        {stratum_label(findings, *c.stratum), arm_label(findings, c.arm, *c.stratum),
         c.difference_ms, spread_cell(c.difference_interval_ms, c.difference_process_range_ms),
         TableCell(c.widening.error, 3), cell_of(c.test, &stats::TestResult::statistic),
         cell_of(c.test, &stats::TestResult::df),
         cell_of(c.test, [](const auto& test) { return p_cell(test.p, test.log_p); })});
  }
  return table;
}

Table typical_table(const Findings& findings, Phase phase) {
  Table table{"Medians and typical calls",
              columns_of("<stratum|<arm|median_ratio|typical|95% interval|units"),
              {}};
  for (const Contrast& c : findings.contrasts) {
    if (c.phase != phase) continue;
    table.rows.push_back(
        {stratum_label(findings, *c.stratum), arm_label(findings, c.arm, *c.stratum),
         c.median_ratio, cell_of(c.typical, &SpreadRatio::ratio), spread_cell(c.typical),
         fmt::format("{}/{} {}", c.units_arm, c.units_baseline, contrast_unit_name(c.unit))});
  }
  return table;
}

Table not_comparable_table(const Findings& findings, Phase phase) {
  Table table{"Not comparable", columns_of("<stratum|<arm|<reason"), {}};
  for (const NotComparable& entry : findings.not_comparable) {
    if (findings.strata[entry.stratum].phase != phase) continue;
    table.rows.push_back({stratum_label(findings, entry.stratum),
                          arm_label(findings, entry.arm, entry.stratum),
                          join(entry.reasons, "; ")});
  }
  return table;
}

// The reason why the arms of these strata aren't paired.
std::string why_unpaired(BlockState state, const std::string& order) {
  switch (state) {
    case BlockState::kWhole:
      break;
    case BlockState::kSeveral:
      return fmt::format(
          "because a block of the order ({}) doesn't hold one repetition of each arm but several "
          "of one",
          order);
    case BlockState::kApart:
      return fmt::format(
          "because the arms didn't run side by side, one repetition of each a block (order: {})",
          order);
    case BlockState::kOrderNotRecorded:
      return "because the order of the run isn't recorded";
  }
  return "because most strata of the phase aren't paired";
}

BlockState blocks_of(const Findings& findings, const Contrast& contrast) {
  const auto at = std::ranges::find(findings.blocks, *contrast.stratum, &StratumBlocks::stratum);
  return at == findings.blocks.end() ? BlockState::kOrderNotRecorded : at->state;
}

// Says which observation the contrast takes for one, and if and why its arms are paired.
std::string unit_text(const Findings& findings, const Contrast& c) {
  const bool processes = c.unit == ContrastUnit::kProcesses;
  if (c.any_look) {
    return "The run was judged after every round of worker processes. So ratios are geometric "
           "means over rounds, their intervals hold at every look and together for all pairs of "
           "a stratum, and there are no tests.";
  }
  if (c.paired) {
    return processes ? "Arms are paired by rounds of worker processes, because each block holds "
                       "one repetition of each arm: the machine's effect on both in a round "
                       "cancels, and the error has the degrees of freedom of the rounds."
                     : "Arms are paired by repetition, because each block holds one repetition of "
                       "each arm: the machine's effect on both in a repetition cancels.";
  }
  return fmt::format("Each {} is one observation; arms are not paired (Welch), {}.",
                     processes ? "process of an arm" : "row",
                     why_unpaired(blocks_of(findings, c), findings.study.order));
}

// The texts on a phase whose strata differ, each with the number of contrasts that it is about.
std::string units_text(const Findings& findings, Phase phase) {
  std::map<std::string, int64_t> texts;
  int64_t left_out = 0;
  for (const Contrast& c : findings.contrasts) {
    if (c.phase != phase) continue;
    left_out += c.left_out;
    ++texts[unit_text(findings, c)];
  }
  std::vector<std::string> parts;
  for (const auto& [text, contrasts] : texts) {
    parts.push_back(
        texts.size() == 1 ? text : fmt::format("In {}: {}", counted(contrasts, "contrast"), text));
  }
  if (left_out > 0) {
    parts.push_back(
        fmt::format("{} that only one arm of a pair has, or that a block holds several "
                    "of, {} left out.",
                    counted(left_out, "repetition"), left_out == 1 ? "is" : "are"));
  }
  return join(parts, " ");
}

}  // namespace

Table effect_table(const Findings& findings, Phase phase) {
  Table table{"Effect sizes of single rows", columns_of("<stratum|<arm|d|g|U|A"), {}};
  for (const Contrast& c : findings.contrasts) {
    if (c.phase != phase) continue;
    table.rows.push_back({stratum_label(findings, *c.stratum),
                          arm_label(findings, c.arm, *c.stratum), TableCell(c.cohen_d, 3),
                          TableCell(c.hedges_g, 3), c.mann_whitney_u,
                          TableCell(c.vargha_delaney_a, 3)});
  }
  return table;
}

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
  if (has_process_ranges(findings)) {
    section.lines.push_back(range_meaning() +
                            ". A verdict then needs the whole range beyond the margin, or within "
                            "it, beside the test.");
  }
  section.lines.emplace_back(
      "typical: the ratio of typical calls. It is the median of pairs or, if rounds are "
      "the unit, the geometric mean of the rounds' medians; combined, the geometric mean "
      "over strata.");
  section.lines.push_back(fmt::format(
      "p: the t test of these units, of the log ratio where samples don't overlap (combined: of "
      "the mean log ratio); tost_p: equivalence within {:.0f} %; both Holm-adjusted over this "
      "table. g: Hedges; A: "
      "Vargha-Delaney, 0.5 is no difference; mde: "
      "difference found with {:.0f} % power.",
      options.margin * 100, options.power * 100));
  if (detail != Detail::kSummary) {
    section.lines.emplace_back(
        "t, df: of the paired test or Welch's, of the log ratio where the samples don't "
        "overlap; errors are multiplied by the widening where units depend on one another. "
        "d: Cohen; U: Mann-Whitney. d, U, g and A describe single rows; no verdict rests on them.");
  }
  std::vector<Table> tables = {
      combined_table(findings, phase), combined_tests_table(findings, phase),
      stratum_table(findings, phase), not_comparable_table(findings, phase)};
  if (detail != Detail::kSummary) {
    for (const auto& table : {difference_table, typical_table, effect_table}) {
      tables.push_back(table(findings, phase));
    }
  }
  for (Table& table : tables) {
    if (!table.rows.empty()) section.tables.push_back(std::move(table));
  }
  if (section.tables.empty()) section.lines = {"No other arm was measured."};
  return section;
}

}  // namespace assay
