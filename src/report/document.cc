// Sections as text and as Markdown.
#include "report/document.h"

#include <algorithm>

#include "base/text/shown_text.h"
#include "base/text/text.h"
#include "report/fitting.h"

namespace assay {
namespace {

constexpr size_t kTerminalColumns = 120;
constexpr size_t kTextIndent = 2;
// Bytes of the longest line: a finding with many arms, strata and rows.
constexpr size_t kLongestReportLine = 20'000;

// Empty where there is no such figure.
std::string figure_markdown(const std::string& id, const std::vector<FigureGroup>& groups) {
  for (const FigureGroup& group : groups) {
    const auto figure = std::ranges::find(group.figures, id, &Figure::id);
    if (figure == group.figures.end()) continue;
    return fmt::format("\n![{}]({})\n\n{}\n", markdown_line(figure->finding, kLongestReportLine),
                       plot_file(*figure), markdown_line(figure->caption));
  }
  return "";
}

}  // namespace

bool has_text(const ReportSection& section) {
  const auto has_rows = [](const Table& table) { return !table.rows.empty(); };
  return !section.lines.empty() || std::ranges::any_of(section.tables, has_rows);
}

std::vector<std::string> as_list(const std::vector<std::string>& items) {
  std::vector<std::string> list;
  for (const std::string& item : items) list.push_back("- " + item);
  return list;
}

std::string plot_file(const Figure& figure) {
  return fmt::format("plots/{}.svg", figure.id);
}

std::string render_text(const std::vector<ReportSection>& sections) {
  std::string out;
  for (const ReportSection& section : sections) {
    if (!out.empty()) out += '\n';
    out += fmt::format("== {} ==\n", shown_line(section.title));
    for (const std::string& line : section.lines) {
      const std::string safe = shown_line(line, kLongestReportLine);
      out += join(wrapped_lines(safe, kTerminalColumns, kTextIndent), "\n") + "\n";
    }
    for (const Table& table : section.tables) {
      if (&table != &section.tables.front()) out += '\n';
      out += table.render(OutputFormat::kTable);
    }
  }
  return out;
}

std::string render_markdown(const std::string& title, const std::vector<ReportSection>& sections,
                            const std::vector<FigureGroup>& figures) {
  std::string out = fmt::format("# {}\n", markdown_line(title));
  for (const ReportSection& section : sections) {
    out += fmt::format("\n## {}\n\n", markdown_line(section.title));
    for (const std::string& line : section.lines)
      out += markdown_line(line, kLongestReportLine) + "\n";
    for (const std::string& id : section.figures) out += figure_markdown(id, figures);
    for (const Table& table : section.tables) {
      if (!out.ends_with("\n\n")) out += "\n";
      out += table.render(OutputFormat::kMarkdown);
    }
  }
  return out;
}

std::string render_markdown(const Document& document) {
  ReportSection verdict{"Verdict", document.outcome};
  if (!document.verdicts.rows.empty()) verdict.tables = {document.verdicts};
  if (!document.legend.empty()) verdict.lines.push_back(document.legend);
  std::vector<ReportSection> sections = {std::move(verdict)};
  for (const ReportSection& section : document.sections) {
    if (has_text(section)) sections.push_back(section);
  }
  return render_markdown(document.title, sections);
}

}  // namespace assay
