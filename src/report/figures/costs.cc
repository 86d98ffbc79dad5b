// What compiling cost, and how near decoding comes to the memory's limit: bars.
#include <algorithm>

#include "base/text.h"
#include "report/figures/parts.h"
#include "report/sections.h"

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
  if (cost.prepare_s) {
    line.bars.push_back(
        {{0, *cost.prepare_s},
         true,
         fmt::format("{}: {} until the first sample", where, seconds(*cost.prepare_s))});
    line.text = seconds(*cost.prepare_s);
  }
  if (cost.compile_s) {
    line.bars.push_back({{0, *cost.compile_s},
                         false,
                         fmt::format("{}: {} in the compiler", where, seconds(*cost.compile_s))});
    line.text += fmt::format("{}{} comp.", line.text.empty() ? "" : ", ", seconds(*cost.compile_s));
  }
  if (line.text.empty()) line.text = "not reported";
  line.text = line_text(line.text);
  line.tip = cost.problem;
  return line;
}

std::string cost_finding(const Findings& findings) {
  const CompileCost* longest = nullptr;
  std::vector<std::string> not_real;
  for (const CompileCost& cost : findings.compile_costs) {
    if (cost.prepare_s && (longest == nullptr || *cost.prepare_s > *longest->prepare_s)) {
      longest = &cost;
    }
    const bool real = cost.compiler_real == CompilerReal::kYes ||
                      cost.compiler_real == CompilerReal::kNotApplicable;
    if (!real && std::ranges::find(not_real, cost.arm) == not_real.end()) {
      not_real.push_back(cost.arm);
    }
  }
  std::string text = "No worker reported the cost of compilation";
  if (longest != nullptr) {
    text = fmt::format("Compiled arms take up to {} until their first sample ({} on {})",
                       seconds(*longest->prepare_s), longest->arm,
                       stratum_label(findings, longest->stratum));
  }
  if (not_real.empty()) return text;
  return fmt::format("{}; {} did not run compiled everywhere", text, listed(not_real));
}

std::string share_finding(const Findings& findings) {
  std::vector<std::string> parts;
  for (const std::string& arm : findings.study.arms) {
    plot::Extent extent;
    for (const ReadShare& share : findings.read_shares) {
      if (share.arm == arm) extent.add(share.share() * 100);
    }
    if (!extent.any()) continue;
    const std::string low = fmt::format("{:.0f}", extent.low());
    const std::string high = fmt::format("{:.0f}", extent.high());
    parts.push_back(fmt::format("{} at {}{} %", arm, low, low == high ? "" : " to " + high));
  }
  return fmt::format("Of the memory's read bandwidth, decoding runs {}", listed(parts, 5));
}

}  // namespace

std::optional<Figure> compile_cost_figure(const Findings& findings) {
  if (!has_compile_costs(findings)) return std::nullopt;
  RowsFigure rows;
  rows.x_label = "seconds";
  rows.start = plot::Scale::Start::kZero;
  std::vector<std::string> arms;
  for (const CompileCost& cost : findings.compile_costs) {
    row_of(findings, cost.stratum, rows).lines.push_back(cost_line(findings, cost));
    arms.push_back(cost.arm);
  }
  const ReportSection section = compile_cost_section(findings);
  Figure figure;
  figure.id = "compiling";
  figure.finding = cost_finding(findings);
  figure.caption =
      "The light bar is the time until a process' first sample could be taken, the dark "
      "one the compiler's part of it, as far as the worker reports it. A process spends "
      "both once, and they are part of no latency above. Counts of graphs, kernels and "
      "recompiles are in the table.";
  figure.legend = arm_legend(findings, arms, false);
  figure.panels = rows_panels(findings, rows, "Time until the first sample");
  figure.tables = section.tables;
  return figure;
}

std::optional<Figure> read_share_figure(const Findings& findings) {
  if (findings.read_shares.empty()) return std::nullopt;
  RowsFigure rows;
  rows.x_label = "% of the measured read bandwidth";
  rows.rule = plot::RuleAt{100, "the limit, as measured"};
  rows.start = plot::Scale::Start::kZero;
  std::vector<std::string> arms;
  for (const ReadShare& share : findings.read_shares) {
    plot::RowLine line;
    line.style = arm_style(findings, share.arm);
    line.tip = fmt::format("{}, {}: {} of {} GB/s", stratum_label(findings, share.stratum),
                           share.arm, format_significant(share.bytes_per_s / 1e9, 3),
                           format_significant(share.limit_bytes_per_s / 1e9, 3));
    line.bars.push_back({{0, share.share() * 100}, false, line.tip});
    line.text = line_text(fmt::format("{:.0f} %, {} GB/s", share.share() * 100,
                                      format_significant(share.bytes_per_s / 1e9, 3)));
    row_of(findings, share.stratum, rows).lines.push_back(std::move(line));
    arms.push_back(share.arm);
  }
  Figure figure;
  figure.id = "bandwidth";
  figure.finding = share_finding(findings);
  figure.caption =
      "Each bar is the rate at which an arm's decode steps read weights and cache. The "
      "dashed line is the rate of summing a buffer larger than any cache on this machine. "
      "The nearer a bar is to the line, the less can be gained. The probe is a lower "
      "bound, so a bar can pass it.";
  figure.legend = arm_legend(findings, arms, false);
  figure.panels = rows_panels(findings, rows, "Shares of the read bandwidth");
  figure.tables = read_section(findings).tables;
  return figure;
}

}  // namespace assay
