#include "report/html/page.h"

#include "base/text/text.h"
#include "report/html/elements.h"
#include "report/html/page_parts.h"
#include "report/judgements/gate_report.h"
#include "report/judgements/route_report.h"
#include "report/sections/sections.h"

namespace assay {
namespace {

std::string section_html(std::string_view id, std::string_view title, std::string_view content) {
  return fmt::format("<section id=\"{}\">\n{}{}</section>\n", id, element("h2", title), content);
}

std::string link_html(std::string_view id, std::string_view title) {
  return fmt::format("<li><a href=\"#{}\">{}</a></li>", id, title);
}

std::string navigation(const Findings& findings, const std::vector<FigureGroup>& groups,
                       const Judgement* judgement, const Route* route) {
  std::string out = "<nav aria-label=\"Parts of this report\"><ul>";
  for (const FigureGroup& group : groups) out += link_html(group.id, group.title);
  if (findings.requirements) out += link_html("requirements", "Requirements");
  out += link_html("findings", "Findings");
  if (judgement != nullptr) out += link_html("gates", "Gates");
  if (route != nullptr) out += link_html("routing", "Routing");
  out += link_html("identity", "Identity");
  return out + "</ul></nav>\n";
}

std::string requirements_html(const Findings& findings) {
  if (!findings.requirements) return "";
  Table table{"",
              {{"requirement", Align::kLeft},
               {"expected", Align::kLeft},
               {"status", Align::kLeft},
               {"because", Align::kLeft}},
              {}};
  for (const Criterion& criterion : findings.requirements->criteria) {
    table.rows.push_back({TableCell::of(criterion.name), TableCell::of(criterion.expected),
                          TableCell::of(std::string(criterion_status_name(criterion.status))),
                          TableCell::of(criterion.reason)});
  }
  const ReportSection section = requirement_section(findings);
  return section_html("requirements", section.title,
                      element("p", section.lines.front()) + table_html(table, section.title));
}

// Lines of a section, which Markdown lists with a dash, as a list.
std::string items_html(const std::vector<std::string>& lines) {
  std::string out = "<ul>\n";
  for (std::string_view line : lines) {
    if (line.starts_with("- ")) line.remove_prefix(2);
    out += element("li", line);
  }
  return out + "</ul>\n";
}

// Every kind of named finding, in words, and the arm to take.
std::string findings_html(const Findings& findings) {
  const ReportSection decision = decision_section(findings);
  return section_html("findings", "Findings and decision",
                      items_html(findings_section(findings, Detail::kSummary).lines) +
                          element("h3", decision.title) + items_html(decision.lines));
}

// A reviewer's checklist.
std::string gates_html(const Judgement* judgement) {
  if (judgement == nullptr) return "";
  const ReportSection section = gate_section(*judgement);
  std::string content;
  for (const std::string& line : section.lines) content += element("p", line);
  for (const Table& table : section.tables) content += table_html(table, section.title);
  return section_html("gates", section.title, content);
}

std::string routing_html(const Route* route) {
  if (route == nullptr) return "";
  const ReportSection section = route_section(*route);
  std::string content;
  for (const Table& table : section.tables) content += table_html(table, section.title);
  return section_html("routing", section.title, content + items_html(section.lines));
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
  content += navigation(findings, groups, judgement, route);
  for (const FigureGroup& group : groups) {
    std::string figures;
    for (const Figure& figure : group.figures) figures += figure_html(figure);
    content += section_html(group.id, group.title, figures);
  }
  content += requirements_html(findings) + findings_html(findings) + gates_html(judgement) +
             routing_html(route) + identity_html(findings);
  content += "</main>\n";
  return page_html(name + ": report", content);
}

}  // namespace assay
