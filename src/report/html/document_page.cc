#include "report/html/document_page.h"

#include <algorithm>

#include "report/html/elements.h"

namespace assay {
namespace {

// The section's figures among these; the section needn't have all that it names.
std::vector<const Figure*> figures_of(const ReportSection& section,
                                      const std::vector<Figure>& figures) {
  std::vector<const Figure*> found;
  for (const std::string& id : section.figures) {
    const auto at = std::ranges::find(figures, id, &Figure::id);
    if (at != figures.end()) found.push_back(&*at);
  }
  return found;
}

bool is_shown(const ReportSection& section, const std::vector<Figure>& figures) {
  return has_text(section) || !figures_of(section, figures).empty();
}

// Neighbours that begin with a dash are one list.
std::string lines_html(const std::vector<std::string>& lines) {
  std::string out;
  bool listing = false;
  for (std::string_view line : lines) {
    const bool item = line.starts_with("- ");
    if (item != listing) out += item ? "<ul>\n" : "</ul>\n";
    listing = item;
    out += item ? element("li", line.substr(2)) : element("p", line);
  }
  return listing ? out + "</ul>\n" : out;
}

// True if lines of the table would be wider than a page.
bool has_sentences(const Table& table) {
  constexpr size_t kLongCell = 40;  // bytes
  return std::ranges::any_of(table.rows, [](const auto& row) {
    return std::ranges::any_of(
        row, [](const TableCell& cell) { return cell_text(cell).size() > kLongCell; });
  });
}

std::string tables_html(const ReportSection& part) {
  std::string out;
  size_t rows = 0;
  for (const Table& table : part.tables) {
    if (table.rows.empty()) continue;
    rows += table.rows.size();
    const std::string html = table_html(table, part.title);
    out += has_sentences(table) ? "<div class=prose>\n" + html + "</div>\n" : html;
  }
  if (!part.folded || out.empty()) return out;
  return fmt::format("<details><summary>The table: {} {}</summary>\n{}</details>\n", rows,
                     rows == 1 ? "row" : "rows", out);
}

std::string navigation_html(const std::vector<ReportSection>& sections,
                            const std::vector<Figure>& figures) {
  std::string out = "<nav aria-label=\"Parts of this page\"><ul>";
  for (const ReportSection& part : sections) {
    if (is_shown(part, figures)) {
      out += "<li>" + element("a", part.title, fmt::format("href=\"#{}\"", part.id)) + "</li>";
    }
  }
  return out + "</ul></nav>\n";
}

}  // namespace

std::string sections_html(const std::vector<ReportSection>& sections,
                          const std::vector<Figure>& figures) {
  std::string out;
  for (const ReportSection& section : sections) {
    if (!is_shown(section, figures)) continue;
    out += fmt::format("<section id=\"{}\">\n", section.id) + element("h2", section.title);
    for (const Figure* figure : figures_of(section, figures)) out += figure_html(*figure);
    out += lines_html(section.lines) + tables_html(section) + "</section>\n";
  }
  return out;
}

std::string document_page(const Document& document, const std::vector<Figure>& figures) {
  std::string content = "<header>" + element("h1", document.title) + "</header>\n<main>\n";
  content += "<section id=verdict class=judged aria-label=Verdict>\n";
  for (const std::string& line : document.outcome) {
    const bool loud = document.failed && &line == &document.outcome.front();
    content += element("p", line, loud ? "class=alert" : "");
  }
  if (!document.verdicts.rows.empty()) content += choice_html(document.verdicts, document.title);
  if (!document.legend.empty()) content += element("p", document.legend, "class=mute");
  content += "</section>\n" + navigation_html(document.sections, figures) +
             sections_html(document.sections, figures);
  return page_html(document.title, content + "</main>\n");
}

}  // namespace assay
