// Tables as aligned text, Markdown, CSV and JSON.
#include "base/tables/table.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "base/tables/csv.h"
#include "base/text/fit_text.h"
#include "base/text/shown_text.h"
#include "base/text/text.h"

namespace assay {
namespace {

std::string shown(const TableCell& cell, bool markdown) {
  const auto safe = markdown ? markdown_line : shown_line;
  return safe(cell_text(cell), kLongestCell);
}

std::string padded(std::string_view text, size_t width, Align align) {
  const std::string space(width - std::min(width, display_width(text)), ' ');
  return align == Align::kRight ? space + std::string(text) : std::string(text) + space;
}

// Takes the widest columns of text down, to their heading and kNarrowest at most, until all of them
// and `between` fit: numbers are never cut.
void narrow(const Table& table, const std::vector<std::string>& headings, size_t columns,
            size_t between, std::vector<size_t>& widths) {
  constexpr size_t kNarrowest = 8;
  const auto total = [&] {
    size_t sum = 0;
    for (const size_t width : widths) sum += width + between;
    return sum - between;
  };
  while (!widths.empty() && total() > columns) {
    size_t* widest = nullptr;
    for (size_t i = 0; i < widths.size(); ++i) {
      const size_t least = std::max(kNarrowest, display_width(headings[i]));
      const Column& column = table.columns[i];
      if (column.align != Align::kLeft || column.figures || widths[i] <= least) continue;
      if (widest == nullptr || widths[i] > *widest) widest = &widths[i];
    }
    if (widest == nullptr) return;
    --*widest;
  }
}

std::string render_text(const Table& table, std::string_view left, std::string_view middle,
                        std::string_view right, bool markdown,
                        std::optional<size_t> columns = std::nullopt) {
  std::vector<std::string> headings;
  for (const Column& column : table.columns) {
    headings.push_back(markdown ? markdown_line(column.name, kLongestCell)
                                : shown_line(column.name, kLongestCell));
  }
  std::vector<size_t> widths;
  for (const std::string& heading : headings) {
    widths.push_back(std::max<size_t>(3, display_width(heading)));
  }
  for (const auto& row : table.rows) {
    for (size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], display_width(shown(row[i], markdown)));
  }
  if (columns) narrow(table, headings, *columns, middle.size(), widths);
  std::string out;
  const auto line = [&](const auto& text_of) {
    std::string text(left);
    for (size_t i = 0; i < table.columns.size(); ++i) {
      if (i > 0) text += middle;
      text += text_of(i);
    }
    text += right;
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + "\n";
  };
  line([&](size_t i) { return padded(headings[i], widths[i], table.columns[i].align); });
  line([&](size_t i) {
    std::string rule(widths[i], '-');
    if (markdown && table.columns[i].align == Align::kRight) rule.back() = ':';
    return rule;
  });
  for (const auto& row : table.rows) {
    line([&](size_t i) {
      const std::string text = shown(row[i], markdown);
      return padded(columns ? shortened(text, widths[i]) : text, widths[i], table.columns[i].align);
    });
  }
  return out;
}

// Whole for files and pipes; a terminal gets cells that are cut.
std::string render_csv(const Table& table) {
  std::vector<std::string> fields;
  for (const Column& column : table.columns) fields.push_back(column.name);
  const size_t most_bytes = ::isatty(STDOUT_FILENO) == 1 ? kLongestCell : SIZE_MAX;
  std::string out = shown_csv_line(fields, most_bytes);
  for (const auto& row : table.rows) {
    fields.clear();
    for (const TableCell& cell : row) {
      fields.push_back(cell.value.is_null()     ? ""
                       : cell.value.is_string() ? cell.value.get<std::string>()
                                                : to_json_line(cell.value));
    }
    out += shown_csv_line(fields, most_bytes);
  }
  return out;
}

}  // namespace

Result<OutputFormat> parse_output_format(std::string_view name) {
  if (name == "table") return OutputFormat::kTable;
  if (name == "json") return OutputFormat::kJson;
  if (name == "csv") return OutputFormat::kCsv;
  if (name == "md") return OutputFormat::kMarkdown;
  return bad_input("output format: expected table, json, csv or md, found \"{}\"", name);
}

std::string cell_text(const TableCell& cell) {
  if (!cell.text.empty()) return cell.text;
  if (cell.value.is_null()) return "-";
  return cell.value.is_string() ? cell.value.get<std::string>() : to_json_line(cell.value);
}

TableCell TableCell::if_any(std::string text) {
  return text.empty() ? absent() : TableCell(std::move(text));
}

TableCell::TableCell(double number, int digits) {
  if (!std::isfinite(number)) return;
  value = number;
  text = format_significant(number, digits);
}

TableCell::TableCell(std::optional<double> number, int digits)
    : TableCell(number ? TableCell(*number, digits) : absent()) {}

std::vector<Column> columns_of(std::string_view names) {
  std::vector<Column> all;
  while (true) {
    const size_t end = std::min(names.find('|'), names.size());
    std::string_view name = names.substr(0, end);
    const bool figures = name.starts_with('=');
    const bool left = figures || name.starts_with('<');
    if (left) name.remove_prefix(1);
    all.push_back({std::string(name), left ? Align::kLeft : Align::kRight, figures});
    if (end == names.size()) return all;
    names.remove_prefix(end + 1);
  }
}

std::string Table::render(OutputFormat format, std::optional<size_t> width) const {
  switch (format) {
    case OutputFormat::kJson:
      return to_json_text(to_json());
    case OutputFormat::kCsv:
      return render_csv(*this);
    case OutputFormat::kMarkdown:
      return (title.empty() ? "" : "### " + markdown_line(title) + "\n\n") +
             render_text(*this, "| ", " | ", " |", true);
    case OutputFormat::kTable:
      break;
  }
  return (title.empty() ? "" : shown_line(title) + "\n") +
         render_text(*this, "", "  ", "", false, width);
}

Json Table::to_json() const {
  Json array = Json::array();
  for (const auto& row : rows) {
    Json object = Json::object();
    for (size_t i = 0; i < row.size(); ++i) object[columns[i].name] = row[i].value;
    array.push_back(std::move(object));
  }
  return array;
}

bool drop_column(std::string_view name, Table& table) {
  const auto at = std::ranges::find(table.columns, name, &Column::name);
  if (at == table.columns.end()) return false;
  const auto place = at - table.columns.begin();
  table.columns.erase(at);
  for (auto& row : table.rows) row.erase(row.begin() + place);
  return true;
}

}  // namespace assay
