// Rows that were lost, as shares with intervals.
#include <algorithm>
#include <set>

#include "base/text/listed.h"
#include "base/text/text.h"
#include "report/figures/parts.h"
#include "report/sections/sections.h"

namespace assay {
namespace {

constexpr size_t kMostLossStrata = 40;

double share_of(const OutcomeCounts& outcome) {
  return static_cast<double>(outcome.failed) /
         static_cast<double>(std::max<int64_t>(1, outcome.attempted));
}

std::string loss_finding(const Findings& findings) {
  if (const std::string none = no_loss(findings); !none.empty()) return none;
  std::vector<std::string> parts;
  for (const OutcomeCounts& outcome : findings.outcomes) {
    if (outcome.stratum || outcome.failed == 0) continue;
    parts.push_back(fmt::format("{} lost {} of {} of {} ({:.1f} %)", outcome.arm, outcome.failed,
                                counted(outcome.attempted, "row"), phase_name(outcome.phase),
                                share_of(outcome) * 100));
  }
  return listed(parts, kMostListed);
}

plot::RowLine line_of(const Findings& findings, const OutcomeCounts& outcome,
                      const std::string& where) {
  plot::RowLine line;
  line.style = arm_style(findings, outcome.arm);
  line.value = share_of(outcome) * 100;
  if (outcome.failed_interval) {
    line.interval =
        plot::Span{outcome.failed_interval->low * 100, outcome.failed_interval->high * 100};
  }
  line.text = line_text(fmt::format("{} of {}", outcome.failed, outcome.attempted));
  std::vector<std::string> classes;
  for (const auto& [name, count] : outcome.by_error_class) {
    classes.push_back(fmt::format("{} {}", count, name));
  }
  line.tip = fmt::format("{}, {}: {} lost{}{}", where, outcome.arm, line.text,
                         classes.empty() ? "" : ": ", join(classes, ", "));
  return line;
}

struct LossRows {
  RowsFigure rows;
  size_t left_out = 0;  // series of strata beyond the first kMostLossStrata
};

LossRows loss_rows(const Findings& findings) {
  LossRows out;
  std::vector<StratumRow>& strata = out.rows.rows;
  std::vector<plot::PlotRow>& phases = out.rows.head;
  std::set<Phase> with_losses;
  for (const OutcomeCounts& outcome : findings.outcomes) {
    if (outcome.failed > 0) with_losses.insert(outcome.phase);
  }
  for (const OutcomeCounts& outcome : findings.outcomes) {
    if (!outcome.stratum) {
      if (!with_losses.contains(outcome.phase)) continue;
      const std::string where = fmt::format("all of {}", phase_name(outcome.phase));
      if (phases.empty() || phases.back().label != where) phases.push_back({where, {}});
      phases.back().lines.push_back(line_of(findings, outcome, where));
      continue;
    }
    if (outcome.failed == 0) continue;
    const std::string where =
        fmt::format("{} {}", phase_name(outcome.phase), stratum_label(findings, *outcome.stratum));
    if (strata.empty() || strata.back().stratum != *outcome.stratum) {
      if (strata.size() == kMostLossStrata) {
        ++out.left_out;
        continue;
      }
      strata.push_back({*outcome.stratum, {row_label(where), {}}});
    }
    strata.back().row.lines.push_back(line_of(findings, outcome, where));
  }
  return out;
}

}  // namespace

std::optional<Figure> loss_figure(const Findings& findings) {
  Figure figure;
  figure.id = "losses";
  figure.finding = loss_finding(findings);
  if (figure.finding.empty()) return std::nullopt;
  if (!no_loss(findings).empty()) return figure;
  auto [rows, left_out] = loss_rows(findings);
  rows.x_label = "% of the attempted rows";
  rows.start = plot::Scale::Start::kZero;
  figure.caption = fmt::format(
      "Each mark is the share of an arm's rows that crashed, timed out or failed "
      "otherwise, warm-ups included; the bar is Wilson's 95 % interval. Phases and "
      "strata without a loss are left out. A bar from 0 can be long if few rows were tried.{}",
      left_out > 0 ? fmt::format(" {} more series are in the table.", left_out) : "");
  figure.legend = arm_legend(findings, findings.study.arms, false);
  draw_rows(findings, rows, "Lost rows", figure);
  figure.tables = outcome_section(findings, Detail::kSummary).tables;
  return figure;
}

}  // namespace assay
