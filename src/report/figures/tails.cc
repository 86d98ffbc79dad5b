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
  const double without =
      tail.recompiled == 0 ? tail.high
                           : std::clamp(tail.high_without.value_or(tail.p50), tail.p50, tail.high);
  line.bars.push_back({{tail.p50, without}, plot::Tint::kFull, ""});
  if (without < tail.high) {
    line.bars.push_back(
        {{without, tail.high},
         plot::Tint::kPale,
         fmt::format("{}: {} of the rows without a recompile, {} ms", tail.arm, high,
                     tail.high_without ? format_significant(*tail.high_without) : "none")});
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
  Figure figure;
  figure.id = fmt::format("{}-tails", phase_name(phase));
  figure.finding = tail_finding(tails, phase);
  if (std::ranges::all_of(tails, [](const Tail* tail) { return tail->slow == 0; })) return figure;
  RowsFigure rows;
  rows.phase = phase_name(phase);
  rows.x_label = "ms";
  std::vector<std::string> arms;
  bool recompiled = false;
  for (const Tail* tail : tails) {
    if (rows.rows.empty() || rows.rows.back().stratum != tail->stratum) {
      rows.rows.push_back({tail->stratum, {row_label(stratum_label(findings, tail->stratum)), {}}});
    }
    rows.rows.back().row.lines.push_back(line_of(findings, *tail));
    arms.push_back(tail->arm);
    for (const plot::Bar& bar : rows.rows.back().row.lines.back().bars) {
      recompiled = recompiled || bar.tint == plot::Tint::kPale;
    }
  }
  figure.caption = fmt::format(
      "A bar reaches from an arm's median, the mark, to p99, or to the slowest row of fewer than "
      "100. Its light part is what the rows that recompiled add. The text gives the bar's end as "
      "a multiple of the median, and how many of the rows above {:.0f} medians carry a recompile.",
      kSlowFactor);
  figure.legend = arm_legend(findings, arms, false);
  if (recompiled) {
    figure.legend.push_back({"what recompiles add", {}, plot::Sample::kLightBar});
  }
  draw_rows(findings, rows, "Tails, as multiples of the median", figure);
  figure.tables = tail_section(findings, phase).tables;
  return figure;
}

}  // namespace assay
