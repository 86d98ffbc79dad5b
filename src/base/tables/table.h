// A table that every printing command can show four ways: table, json, csv, md.
#pragma once

#include <concepts>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/records/json.h"
#include "base/result.h"

namespace assay {

enum class OutputFormat { kTable, kJson, kCsv, kMarkdown };

Result<OutputFormat> parse_output_format(std::string_view name);  // table | json | csv | md

enum class Align { kLeft, kRight };

struct Column {
  std::string name;  // snake_case with its unit: the key in JSON and CSV, the heading elsewhere
  Align align = Align::kRight;
  // True for text that is figures, such as a ratio with its interval: it is never cut, nor is a
  // column that is aligned to the right.
  bool figures = false;
};

// Columns by their names, with "|" between them. "<name" is aligned to the left; "=name" too, and
// is text that is figures.
std::vector<Column> columns_of(std::string_view names);

// A cell keeps its value for machines and its text for people; an absent cell is empty in CSV, null
// in JSON and "-" in a table. A row is written as a list of plain values.
struct TableCell {
  Json value;        // null: absent
  std::string text;  // shown in a table and in Markdown; empty: derived from the value

  TableCell() = default;
  TableCell(Json data, std::string shown) : value(std::move(data)), text(std::move(shown)) {}
  // NOLINTBEGIN(google-explicit-constructor)
  TableCell(const char* words) : value(words) {}
  TableCell(std::string words) : value(std::move(words)) {}
  TableCell(std::string_view words) : value(words) {}
  TableCell(std::integral auto number) : value(number) {}
  TableCell(bool) = delete;
  // `digits` significant digits in the table; the full value in JSON and CSV. NaN and infinity:
  // absent.
  TableCell(double number, int digits = 4);
  TableCell(std::optional<double> number, int digits = 4);
  // NOLINTEND(google-explicit-constructor)

  static TableCell absent() { return {}; }
  static TableCell if_any(std::string text);  // empty: absent
};

// A cell of what `make` gives of a value that may be absent: a function, or a pointer to a member.
template <typename T, typename F>
TableCell cell_of(const std::optional<T>& value, F make) {
  return value ? TableCell(std::invoke(make, *value)) : TableCell::absent();
}
// A row of many cells.
template <typename... Cells>
std::vector<TableCell> row_of(Cells&&... cells) {
  return {TableCell(std::forward<Cells>(cells))...};
}

// The cell's text for people, unescaped: its caller makes it safe (base/text/shown_text.h).
std::string cell_text(const TableCell& cell);

struct Table {
  std::string title = {};  // printed above in table and md; may be empty
  std::vector<Column> columns;
  std::vector<std::vector<TableCell>> rows = {};  // each as long as columns

  // JSON: an array of objects. Text ends with a newline. `width`: a table keeps to it if shortening
  // text ("..." in its middle) is enough.
  // CSV is as shown_csv_line() (base/tables/csv.h) has it; JSON alone has every text byte for byte.
  std::string render(OutputFormat format, std::optional<size_t> width = std::nullopt) const;
  Json to_json() const;
};

// Takes away the column of this name. False: there is none.
bool drop_column(std::string_view name, Table& table);

}  // namespace assay
