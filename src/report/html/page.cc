#include "report/html/page.h"

#include "base/text/text.h"
#include "report/html/document_page.h"
#include "report/html/elements.h"
#include "report/html/page_parts.h"
#include "report/judgements/gate_report.h"
#include "report/judgements/route_report.h"
#include "report/sections/sections.h"
#include "report/slow_calls.h"

namespace assay {
namespace {

std::string section_html(std::string_view id, std::string_view title, std::string_view content) {
  return fmt::format("<section id=\"{}\">\n{}{}</section>\n", id, element("h2", title), content);
}

std::string link_html(std::string_view id, std::string_view title) {
  return fmt::format("<li><a href=\"#{}\">{}</a></li>", id, title);
}

// The parts below the figures: sentences and tables that text and Markdown have too.
std::vector<ReportSection> told_sections(const Findings& findings, const Judgement* judgement,
                                         const Route* route) {
  std::vector<ReportSection> sections;
  const auto add = [&](const char* id, ReportSection section) {
    section.id = id;
    sections.push_back(std::move(section));
  };
  if (findings.requirements) add("requirements", requirement_section(findings));
  ReportSection named = findings_section(findings, Detail::kSummary);
  if (!findings.named.empty()) named.lines = as_list(named.lines);
  add("findings", std::move(named));
  if (!findings.slow_calls.empty()) add("slow-calls", slow_calls_section(findings));
  add("decision", decision_section(findings));
  if (judgement != nullptr) add("gates", gate_section(*judgement));
  if (route != nullptr) add("routing", route_section(*route));
  return sections;
}

std::string navigation(const std::vector<FigureGroup>& groups,
                       const std::vector<ReportSection>& sections) {
  std::string out = "<nav aria-label=\"Parts of this report\"><ul>";
  for (const FigureGroup& group : groups) out += link_html(group.id, group.title);
  for (const ReportSection& section : sections) out += link_html(section.id, section.title);
  out += link_html("identity", "Identity");
  return out + "</ul></nav>\n";
}

std::string identity_html(const Findings& findings) {
  const std::string hash = identity_hash(findings);
  std::string content = fmt::format(
      "<p>SHA-256 of the identity: <span class=hash>{0}</span><button hidden "
      "data-copy=\"{0}\">copy</button></p>\n",
      hash);
  content += "<details><summary>Who was measured, and how</summary>\n<div class=identity>\n";
  for (const Table& table : identity_section(findings).tables) {
    content += table_html(table, "identity");
  }
  content += "</div></details>\n";
  return section_html("identity", "Identity", content);
}

// The opening tag of the page's main part. If a page has many panels, those out of sight are laid
// out when they come into it, or it would open slowly; until then a screen reader reaches their
// figures' findings and tables, not the panels' own text.
std::string_view main_tag(const std::vector<FigureGroup>& groups) {
  constexpr size_t kMany = 100;
  size_t panels = 0;
  for (const FigureGroup& group : groups) {
    for (const Figure& figure : group.figures) panels += figure.panels.size();
  }
  return panels > kMany ? "<main class=long>\n" : "<main>\n";
}

}  // namespace

std::string render_page(const Findings& findings, const std::vector<FigureGroup>& groups,
                        const Judgement* judgement, const Route* route) {
  const std::string name = findings.study.name.empty() ? "Report" : findings.study.name;
  std::string content = "<header>" + element("h1", name) + "</header>\n";
  content += main_tag(groups);
  content += "<section id=verdict aria-label=Verdict>\n" + verdict_html(findings) + "</section>\n";
  const std::vector<ReportSection> told = told_sections(findings, judgement, route);
  content += navigation(groups, told);
  for (const FigureGroup& group : groups) {
    std::string figures;
    for (const Figure& figure : group.figures) figures += figure_html(figure);
    for (const std::string& line : group.lines) figures += element("p", line);
    content += section_html(group.id, group.title, figures);
  }
  content += sections_html(told, {}) + identity_html(findings);
  content += "</main>\n";
  return page_html(name + ": report", content);
}

}  // namespace assay
