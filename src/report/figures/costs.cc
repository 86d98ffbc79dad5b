// Figures of the cost of compiling, and of the share of the memory's limit that decoding reads.
#include <algorithm>

#include "base/add_once.h"
#include "base/text/listed.h"
#include "base/text/text.h"
#include "report/figures/parts.h"
#include "report/sections/sections.h"

namespace assay {
namespace {

// One row a stratum, in the findings' order.
plot::PlotRow& row_of(const Findings& findings, size_t stratum, RowsFigure& rows) {
  if (rows.rows.empty() || rows.rows.back().stratum != stratum) {
    const std::string label = fmt::format("{} {}", phase_name(findings.strata[stratum].phase),
                                          stratum_label(findings, stratum));
    rows.rows.push_back({stratum, {row_label(label), {}}});
  }
  return rows.rows.back().row;
}

std::string seconds(double value) {
  return value > 0 && value < 1 ? format_significant(value * 1e3, 3) + " ms"
                                : format_significant(value, 3) + " s";
}

plot::RowLine cost_line(const Findings& findings, const CompileCost& cost) {
  plot::RowLine line;
  line.style = arm_style(findings, cost.arm);
  const std::string where = fmt::format("{}, {}", stratum_label(findings, cost.stratum), cost.arm);
  line.value = cost.prepare_s;
  if (cost.prepare_s) {
    line.text = seconds(*cost.prepare_s);
    line.tip = fmt::format("{}: {} until the first process' first sample{}", where, line.text,
                           cost.first_loaded ? ", with kernels from disk" : "");
  }
  if (cost.later_prepare_s && cost.prepare_s) {
    const double later = *cost.later_prepare_s;
    line.bars.push_back({{std::min(later, *cost.prepare_s), std::max(later, *cost.prepare_s)},
                         plot::Tint::kFull,
                         fmt::format("{}: {} in a later process (median of {})", where,
                                     seconds(later), cost.later_processes)});
    line.text += ", then " + seconds(later);
  }
  if (line.text.empty()) {
    line.text = "not reported";
    line.tip = cost.problem;
  }
  line.text = line_text(line.text);
  return line;
}

// True if the cell's timed rows ran compiled, or its phase has nothing to compile. A cell without
// timed rows goes by its worker's verdict.
bool ran_compiled(const Findings& findings, const CompileCost& cost) {
  const auto tail = std::ranges::find_if(findings.tails, [&](const Tail& one) {
    return one.stratum == cost.stratum && one.arm == cost.arm;
  });
  if (tail == findings.tails.end()) {
    return cost.compiler_real == CompilerReal::kYes ||
           cost.compiler_real == CompilerReal::kNotApplicable;
  }
  return tail->execution == Execution::kCompiled || tail->execution == Execution::kEager;
}

// The title of a figure whose costs are known for one arm at least.
std::string cost_finding(const Findings& findings) {
  const CompileCost* longest = nullptr;
  std::vector<std::string> not_real;
  for (const CompileCost& cost : findings.compile_costs) {
    // One that compiled tells more than one that loaded, however long that took.
    const auto rank = [](const CompileCost& one) {
      return std::pair(!one.first_loaded, *one.prepare_s);
    };
    if (cost.prepare_s && (longest == nullptr || rank(cost) > rank(*longest))) longest = &cost;
    if (!ran_compiled(findings, cost)) add_once(not_real, cost.arm);
  }
  const std::string where =
      fmt::format("{} on {}", longest->arm, stratum_label(findings, longest->stratum));
  const std::string later =
      longest->later_prepare_s
          ? fmt::format("; its later ones {}", seconds(*longest->later_prepare_s))
          : "";
  std::string text = fmt::format(
      "The first process of a compiled arm takes up to {} until its first sample ({}{})",
      seconds(*longest->prepare_s), where, later);
  if (longest->first_loaded) {
    text = fmt::format(
        "What compiling cost isn't known, because no process of a cell compiled: with kernels from "
        "disk the first takes up to {} until its first sample ({}{})",
        seconds(*longest->prepare_s), where, later);
  }
  if (not_real.empty()) return text;
  return fmt::format("{}; {} did not run compiled everywhere", text, listed(not_real, kMostListed));
}

// Prompts have a share of the memory's rate too, on a GPU, but arithmetic limits them.
bool decodes_alone(const Findings& findings, const ReadShare& share) {
  return findings.strata[share.stratum].phase == Phase::kKvDecode;
}

std::string share_finding(const Findings& findings) {
  std::vector<std::string> parts;
  for (const std::string& arm : findings.study.arms) {
    plot::Extent extent;
    for (const ReadShare& share : findings.read_shares) {
      if (share.arm == arm && decodes_alone(findings, share)) extent.add(share.share() * 100);
    }
    if (!extent.any()) continue;
    const std::string low = percent_text(extent.low() / 100);
    const std::string high = percent_text(extent.high() / 100);
    parts.push_back(fmt::format("{} at {}{} %", arm, low, low == high ? "" : " to " + high));
  }
  return fmt::format("Of the memory's read bandwidth, decoding runs {}", listed(parts, 5));
}

}  // namespace

std::optional<Figure> compile_cost_figure(const Findings& findings) {
  // No cost of compiling is known: the section of report.md has the counts.
  if (std::ranges::none_of(findings.compile_costs,
                           [](const CompileCost& cost) { return cost.prepare_s.has_value(); })) {
    return std::nullopt;
  }
  Figure figure;
  figure.id = "compiling";
  figure.finding = cost_finding(findings);
  if (std::ranges::all_of(findings.compile_costs, [](const CompileCost& cost) {
        return !cost.prepare_s || cost.first_loaded;
      })) {
    return figure;
  }
  RowsFigure rows;
  rows.x_label = "seconds";
  std::vector<std::string> arms;
  for (const CompileCost& cost : findings.compile_costs) {
    row_of(findings, cost.stratum, rows).lines.push_back(cost_line(findings, cost));
    arms.push_back(cost.arm);
  }
  figure.caption =
      "Each mark is the time until the cell's first process could take its first sample, the other "
      "end of its bar the median of its later processes, which find on disk what an earlier one "
      "compiled unless "
      "their caches are emptied. So does a first process if an earlier run left its kernels, or "
      "the "
      "process that gave the tokens of the parity check before it. "
      "Every process spends this time once, and it is part of no latency above. The compiler's "
      "own time and counts of graphs, kernels and recompiles are in the table.";
  figure.legend = arm_legend(findings, arms, false);
  draw_rows(findings, rows, "Time until the first sample", figure);
  figure.tables = compile_cost_section(findings).tables;
  return figure;
}

std::optional<Figure> read_share_figure(const Findings& findings) {
  if (std::ranges::none_of(findings.read_shares, [&](const ReadShare& share) {
        return decodes_alone(findings, share);
      })) {
    return std::nullopt;
  }
  RowsFigure rows;
  rows.x_label = "% of the measured read bandwidth";
  rows.rule = plot::RuleAt{100, "the limit, as measured"};
  std::vector<std::string> arms;
  for (const ReadShare& share : findings.read_shares) {
    if (!decodes_alone(findings, share)) continue;
    plot::RowLine line;
    line.style = arm_style(findings, share.arm);
    line.tip = fmt::format("{}, {}: {} of {} GB/s", stratum_label(findings, share.stratum),
                           share.arm, format_significant(share.bytes_per_s / 1e9, 3),
                           format_significant(share.limit_bytes_per_s / 1e9, 3));
    line.value = share.share() * 100;
    line.text = line_text(fmt::format("{} %, {} GB/s", percent_text(share.share()),
                                      format_significant(share.bytes_per_s / 1e9, 3)));
    row_of(findings, share.stratum, rows).lines.push_back(std::move(line));
    arms.push_back(share.arm);
  }
  Figure figure;
  figure.id = "bandwidth";
  figure.finding = share_finding(findings);
  figure.caption =
      "Each mark is the rate at which an arm's decode steps read weights and cache. The "
      "line at 100 % is the rate of summing a buffer larger than any cache on this machine. "
      "The nearer a mark is to the line, the less can be gained. The probe is a lower "
      "bound, so a mark can pass it.";
  figure.legend = arm_legend(findings, arms, false);
  draw_rows(findings, rows, "Shares of the read bandwidth", figure);
  figure.tables = read_section(findings).tables;
  return figure;
}

}  // namespace assay
