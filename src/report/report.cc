// The report's order, and its two renderings.
#include "report/report.h"

#include <algorithm>
#include <future>
#include <set>

#include "base/files/folder.h"
#include "base/text/shown_text.h"
#include "base/text/text.h"
#include "report/fitting.h"
#include "report/flat_table.h"
#include "report/html/page.h"
#include "report/judgements/gate_report.h"
#include "report/judgements/route_report.h"
#include "report/load_report.h"
#include "report/phase_answers.h"
#include "report/sections/sections.h"
#include "report/slow_calls.h"

namespace assay {
namespace {

std::string markdown_report(const Findings& findings, const std::vector<FigureGroup>& figures,
                            const Judgement* judgement, const Route* route) {
  const std::string& name = findings.study.name;
  std::vector<ReportSection> sections = report_sections(findings, Detail::kFull);
  if (judgement != nullptr) sections.push_back(gate_section(*judgement));
  if (route != nullptr) sections.push_back(route_section(*route));
  return render_markdown(name.empty() ? "Findings" : "Findings of " + name, sections, figures);
}

// Replaces the files of an earlier report.
Status write_plots(const std::vector<FigureGroup>& groups, Folder& bundle) {
  std::set<std::string> written;
  for (const FigureGroup& group : groups) {
    for (const Figure& figure : group.figures) {
      if (written.empty()) ASSAY_CHECK(bundle.make_folder("plots"));
      ASSAY_CHECK(bundle.write_atomic(
          plot_file(figure),
          plot::sheet(figure.finding, figure.caption, figure.legend, figure.panels)));
      written.insert(plot_file(figure));
    }
  }
  ASSAY_TRY(const auto entries, bundle.list());
  for (const FolderEntry& entry : entries) {
    const bool plot = entry.name.starts_with("plots/") && entry.name.ends_with(".svg");
    if (plot && entry.kind == FolderEntry::Kind::kFile && !written.contains(entry.name)) {
      ASSAY_CHECK(bundle.remove(entry.name));
    }
  }
  return {};
}

}  // namespace

std::vector<ReportSection> report_sections(const Findings& findings, Detail detail) {
  std::vector<ReportSection> sections = {answer_section(findings), identity_section(findings),
                                         outcome_section(findings, detail)};
  if (findings.requirements) {
    sections.insert(sections.begin() + 2, requirement_section(findings));
  }
  for (const Phase phase : kPhases) {
    if (!has_phase(findings, phase)) continue;
    if (phase == Phase::kLoad && !findings.load.points.empty())
      sections.push_back(load_section(findings));
    sections.push_back(latency_section(findings, phase, detail));
    sections.push_back(contrast_section(findings, phase, detail));
    if (has_tails(findings, phase)) sections.push_back(tail_section(findings, phase));
  }
  if (!findings.slow_calls.empty()) sections.push_back(slow_calls_section(findings));
  if (has_compile_costs(findings)) sections.push_back(compile_cost_section(findings));
  if (!findings.read_shares.empty()) sections.push_back(read_section(findings));
  if (!findings.qualities.empty()) sections.push_back(quality_section(findings));
  if (!findings.profiles.empty()) sections.push_back(profile_section(findings, detail));
  if (!findings.splits.empty()) sections.push_back(split_section(findings));
  if (!findings.sizes.empty()) sections.push_back(size_section(findings));
  sections.push_back(findings_section(findings, detail));
  sections.push_back(decision_section(findings));
  return sections;
}

std::string render_report(const Findings& findings, OutputFormat format) {
  switch (format) {
    case OutputFormat::kJson: {
      Json json = {{"answers", phase_answers_json(phase_answers(findings))}};
      json.update(findings_to_json(findings));
      return to_json_text(json);
    }
    case OutputFormat::kCsv:
      return flat_table(findings).render(OutputFormat::kCsv);
    case OutputFormat::kMarkdown:
      return markdown_report(findings, {}, nullptr, nullptr);
    case OutputFormat::kTable:
      break;
  }
  return render_text(report_sections(findings, Detail::kTables));
}

Result<WrittenReport> write_report(const Findings& findings, const PlottedRows* plotted,
                                   const Judgement* judgement, const Route* route,
                                   const std::filesystem::path& folder) {
  ASSAY_TRY(Folder bundle, Folder::open(folder));
  const std::vector<FigureGroup> groups = figure_groups(findings, plotted);
  std::string page;
  std::string markdown;
  auto other = std::async([&] { page = render_page(findings, groups, judgement, route); });
  markdown = markdown_report(findings, groups, judgement, route);
  ASSAY_CHECK(write_plots(groups, bundle));
  other.get();
  ASSAY_CHECK(bundle.write_atomic("report.md", markdown));
  ASSAY_CHECK(bundle.write_atomic("report.html", page));
  return WrittenReport{bundle.path_of("report.html"), bundle.path_of("report.md")};
}

}  // namespace assay
