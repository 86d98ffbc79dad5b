// The slow end of each arm's latencies, and how much of it recompiles make.
#include <algorithm>

#include "base/text/text.h"
#include "report/figures/parts.h"
#include "report/sections/sections.h"

namespace assay {
namespace {

std::string tail_finding(const std::vector<const Tail*>& tails, Phase phase) {
  int64_t slow = 0;
  int64_t recompiled = 0;
  int64_t rows = 0;
  const Tail* worst = nullptr;
  for (const Tail* tail : tails) {
    slow += tail->slow;
    recompiled += tail->slow_recompiled;
    rows += tail->n;
    if (worst == nullptr || tail->high / tail->p50 > worst->high / worst->p50) worst = tail;
  }
  const std::string name(phase_name(phase));
  if (slow == 0) {
    return fmt::format("{}: none of {} takes over {:.0f} times its arm's median", name,
                       counted(rows, "row"), kSlowFactor);
  }
  return fmt::format(
      "{}: {} of {} {} over {:.0f} times their arm's median, {} of them with a recompile; the "
      "longest tail is {}'s, {} times its median",
      name, slow, counted(rows, "row"), slow == 1 ? "takes" : "take", kSlowFactor,
      recompiled == slow ? "all"
      : recompiled == 0  ? "none"
                         : std::to_string(recompiled),
      worst->arm, format_significant(worst->high / worst->p50, 3));
}

plot::RowLine line_of(const Findings& findings, const Tail& tail) {
  const char* high = tail.high_is_max ? "slowest" : "p99";
  plot::RowLine line;
  line.style = arm_style(findings, tail.arm);
  line.value = tail.p50;
  line.tip = fmt::format("{}: median {} ms of {}, {} {} ms", tail.arm, format_significant(tail.p50),
                         counted(tail.n, "row"), high, format_significant(tail.high));
  line.bars.push_back({{tail.p50, tail.high}, true, ""});
  line.extras.push_back({tail.high, plot::Around::kRing, ""});
  if (tail.high_without) {
    line.extras.push_back({*tail.high_without, plot::Around::kDiamond,
                           fmt::format("{}: {} of the rows without a recompile, {} ms", tail.arm,
                                       high, format_significant(*tail.high_without))});
  }
  line.text = fmt::format("x {}", format_significant(tail.high / tail.p50, 3));
  if (tail.slow > 0) line.text += fmt::format(", {}/{} rec.", tail.slow_recompiled, tail.slow);
  line.text = line_text(line.text);
  return line;
}

}  // namespace

std::optional<Figure> tail_figure(const Findings& findings, Phase phase) {
  std::vector<const Tail*> tails;
  for (const Tail& tail : findings.tails) {
    if (findings.strata[tail.stratum].phase == phase) tails.push_back(&tail);
  }
  if (tails.empty()) return std::nullopt;
  RowsFigure rows;
  rows.phase = phase_name(phase);
  rows.x_label = "ms";
  std::vector<std::string> arms;
  for (const Tail* tail : tails) {
    if (rows.rows.empty() || rows.rows.back().stratum != tail->stratum) {
      rows.rows.push_back({tail->stratum, {row_label(stratum_label(findings, tail->stratum)), {}}});
    }
    rows.rows.back().row.lines.push_back(line_of(findings, *tail));
    arms.push_back(tail->arm);
  }
  Figure figure;
  figure.id = fmt::format("{}-tails", phase_name(phase));
  figure.finding = tail_finding(tails, phase);
  figure.caption = fmt::format(
      "A bar reaches from an arm's median, the mark, to the ring: p99, or the slowest row "
      "of fewer than 100. The diamond is the same figure without the rows that recompiled. "
      "If it lies far left of the ring, recompiles cause the tail. The text gives the ring "
      "as a multiple of the median, and how many of the rows above {:.0f} medians carry a "
      "recompile.",
      kSlowFactor);
  figure.legend = arm_legend(findings, arms, false);
  figure.panels = rows_panels(findings, rows, "Tails, as multiples of the median");
  figure.tables = tail_section(findings, phase).tables;
  return figure;
}

}  // namespace assay
