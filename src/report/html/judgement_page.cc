#include "report/html/judgement_page.h"

#include <algorithm>

#include "report/html/elements.h"

namespace assay {
namespace {

bool has_content(const JudgementPart& part) {
  return !part.figures.empty() || !part.lines.empty() ||
         std::ranges::any_of(part.tables, [](const Table& table) { return !table.rows.empty(); });
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

std::string tables_html(const JudgementPart& part) {
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

std::string navigation_html(const std::vector<JudgementPart>& parts) {
  std::string out = "<nav aria-label=\"Parts of this page\"><ul>";
  for (const JudgementPart& part : parts) {
    if (has_content(part)) {
      out += "<li>" + element("a", part.title, fmt::format("href=\"#{}\"", part.id)) + "</li>";
    }
  }
  return out + "</ul></nav>\n";
}

}  // namespace

std::string judgement_parts_html(const std::vector<JudgementPart>& parts) {
  std::string out;
  for (const JudgementPart& part : parts) {
    if (!has_content(part)) continue;
    out += fmt::format("<section id=\"{}\">\n", part.id) + element("h2", part.title);
    for (const Figure& figure : part.figures) out += figure_html(figure);
    out += lines_html(part.lines) + tables_html(part) + "</section>\n";
  }
  return out;
}

std::string judgement_page(const JudgementPage& page) {
  std::string content = "<header>" + element("h1", page.title) + "</header>\n<main>\n";
  content += "<section id=verdict class=judged aria-label=Verdict>\n";
  for (const std::string& line : page.outcome) {
    const bool loud = page.failed && &line == &page.outcome.front();
    content += element("p", line, loud ? "class=alert" : "");
  }
  if (!page.verdicts.rows.empty()) content += choice_html(page.verdicts, page.title);
  content += "</section>\n" + navigation_html(page.parts) + judgement_parts_html(page.parts);
  return page_html(page.title, content + "</main>\n");
}

}  // namespace assay
