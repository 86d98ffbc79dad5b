// The figures of a report, in their order.
#include "report/figures/parts.h"
#include "report/sections/sections.h"

namespace assay {
namespace {

void add(std::optional<Figure> figure, FigureGroup& group) {
  if (!figure) return;
  if (figure->panels.empty()) {
    group.lines.push_back(figure->finding + ".");
  } else {
    group.figures.push_back(*std::move(figure));
  }
}

FigureGroup group_of_phase(const Findings& findings, const PlottedRows* plotted, Phase phase) {
  const std::string name(phase_name(phase));
  FigureGroup group{name, name, {}, {}};
  if (phase == Phase::kLoad) {
    add(load_curve_figure(findings), group);
    add(load_latency_figure(findings), group);
    if (plotted != nullptr) add(load_timeline_figure(findings, *plotted), group);
  }
  add(ratio_figure(findings, phase), group);
  add(growth_figure(findings, phase), group);
  if (plotted != nullptr) {
    add(distribution_figure(findings, *plotted, phase), group);
    add(order_figure(findings, *plotted, phase), group);
  }
  add(tail_figure(findings, phase), group);
  return group;
}

}  // namespace

std::vector<FigureGroup> figure_groups(const Findings& findings, const PlottedRows* plotted) {
  std::vector<FigureGroup> groups;
  for (const Phase phase : kPhases) {
    if (has_phase(findings, phase)) groups.push_back(group_of_phase(findings, plotted, phase));
  }
  FigureGroup whole{"study", "The whole study", {}, {}};
  add(loss_figure(findings), whole);
  add(compile_cost_figure(findings), whole);
  add(split_figure(findings), whole);
  add(size_figure(findings), whole);
  add(read_share_figure(findings), whole);
  if (plotted != nullptr) add(timeline_figure(findings, *plotted), whole);
  groups.push_back(std::move(whole));
  std::erase_if(groups, [](const FigureGroup& group) {
    return group.figures.empty() && group.lines.empty();
  });
  return groups;
}

}  // namespace assay
