#include "report/html/elements.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/shown_text.h"
#include "report/html/page_style.h"
#include "report/plot/theme.h"

namespace assay {
namespace {

// Bytes of the longest text: a finding with many arms, strata and rows.
constexpr size_t kLongestText = 20'000;

std::string text_of(std::string_view text) {
  return html_text(text, kLongestText);
}

std::string cell_html(const TableCell& cell) {
  return html_text(cell_text(cell), kLongestCell);
}

// "l1 l3": columns whose text begins at their left, which the page's style knows up to the 20th.
std::string left_columns(const Table& table) {
  std::string classes;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    if (table.columns[i].align == Align::kLeft) classes += fmt::format(" l{}", i + 1);
  }
  return classes;
}

std::string head_html(const Table& table, std::string_view role) {
  std::string out = fmt::format("<thead{}><tr{}>", role.empty() ? "" : " role=rowgroup",
                                role.empty() ? "" : " role=row");
  for (const Column& column : table.columns) {
    out += fmt::format("<th scope=col{}>{}</th>", role, text_of(column.name));
  }
  return out + "</tr></thead>";
}

// "no rival" -> "no-rival", "2 faster" -> "faster": a class of the page's style.
std::string verdict_class(std::string word) {
  word.erase(0, word.find_first_not_of("0123456789 "));
  std::ranges::replace(word, ' ', '-');
  return text_of(word);
}

std::string legend_html(const std::vector<plot::LegendEntry>& legend) {
  if (legend.empty()) return "";
  std::string out = "<ul class=legend>";
  for (const plot::LegendEntry& entry : legend) {
    out += fmt::format("<li>{} {}</li>", plot::legend_mark(entry), text_of(entry.name));
  }
  return out + "</ul>\n";
}

}  // namespace

std::string element(std::string_view tag, std::string_view text, std::string_view attributes) {
  return fmt::format("<{0}{1}{2}>{3}</{0}>\n", tag, attributes.empty() ? "" : " ", attributes,
                     text_of(text));
}

std::string table_html(const Table& table, std::string_view name) {
  const bool titled = !table.title.empty();
  const std::string label = text_of(titled ? table.title : name);
  std::string out = fmt::format(
      "<div class=scroll tabindex=0 role=region aria-label=\"{0}\"><table "
      "class=\"{3}\"{4}>{1}{2}<tbody>",
      label, titled ? fmt::format("<caption>{}</caption>", label) : "", head_html(table, ""),
      left_columns(table), titled ? "" : fmt::format(" aria-label=\"{}\"", label));
  for (const auto& row : table.rows) {
    out += "<tr>";
    for (const TableCell& cell : row) out += "<td>" + cell_html(cell);
    out += '\n';
  }
  return out + "</table></div>\n";
}

// Roles, because a table laid out as cards is no table to a browser.
std::string choice_html(const Table& table, std::string_view name) {
  std::string out =
      fmt::format("<table class=\"choices{}\" role=table aria-label=\"{}\">{}<tbody role=rowgroup>",
                  left_columns(table), text_of(name), head_html(table, " role=columnheader"));
  for (const auto& row : table.rows) {
    out += "<tr role=row>";
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string text = cell_html(row[i]);
      const std::string& column = table.columns[i].name;
      out += fmt::format("<td role=cell data-label=\"{}\">", text_of(column));
      const bool judged = column == "verdict" && cell_text(row[i]) != "-";
      out += judged ? fmt::format("<b class=\"word {}\">{}</b></td>",
                                  verdict_class(cell_text(row[i])), text)
                    : fmt::format("{}</td>", text);
    }
    out += "</tr>\n";
  }
  return out + "</tbody></table>\n";
}

namespace {

// Tags in few characters: there may be fifty thousand cells.
std::string points_html(const PointTable& table) {
  const std::string label = text_of(table.title);
  std::string out = fmt::format(
      "<div class=scroll tabindex=0 role=region aria-label=\"{0}\"><table><caption>{0}</caption>"
      "<thead><tr>",
      label);
  for (const std::string& column : table.columns) {
    out += fmt::format("<th scope=col>{}", text_of(column));
  }
  for (const PointGroup& group : table.groups) {
    out += fmt::format("\n<tbody><tr><th scope=rowgroup colspan={}>{}", table.columns.size(),
                       text_of(group.title));
    for (const auto& row : group.rows) {
      for (size_t i = 0; i < row.size(); ++i) {
        out += i == 0 ? "\n<tr><th>" : "<td>";
        out += html_text(row[i], kLongestCell);
      }
    }
  }
  return out + "</table></div>\n";
}

std::string numbers_html(const Figure& figure) {
  if (figure.tables.empty() && !figure.points) return "";
  // Points alone aren't printed: they would fill a hundred sheets.
  std::string out = fmt::format("<details{}><summary>The numbers behind this figure</summary>\n",
                                figure.tables.empty() ? " class=points" : "");
  for (const Table& table : figure.tables) {
    out += table_html(table, "numbers behind: " + figure.finding);
  }
  if (figure.points) out += points_html(*figure.points);
  return out + "</details>\n";
}

}  // namespace

std::string figure_html(const Figure& figure) {
  std::string out = fmt::format("<figure id=\"{0}\" aria-labelledby=\"{0}-t\">\n", figure.id);
  out += element("h3", figure.finding, fmt::format("id=\"{}-t\"", figure.id));
  out += legend_html(figure.legend);
  out += "<div class=panels>\n";
  for (const plot::Panel& panel : figure.panels) out += plot::panel_svg(panel) + "\n";
  out += "</div>\n";
  out += element("figcaption", figure.caption);
  return out + numbers_html(figure) + "</figure>\n";
}

std::string list_html(std::string_view heading, const std::vector<std::string>& lines) {
  if (lines.empty()) return "";
  std::string out = element("h3", heading) + "<ul>\n";
  for (const std::string& line : lines) out += element("li", line);
  return out + "</ul>\n";
}

// The policy lets nothing be fetched, whatever a name in the bundle says.
std::string page_html(std::string_view title, std::string_view content) {
  return fmt::format(
      "<!doctype html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n"
      "<meta name=viewport content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src "
      "'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n"
      "<meta name=color-scheme content=\"light dark\">\n<link rel=icon href=\"data:,\">\n"
      "<title>{}</title>\n<style>\n{}{}</style>\n</head>\n<body>\n{}{}</body>\n</html>\n",
      text_of(title), plot::theme_css(), page_css(), content, page_script());
}

}  // namespace assay
