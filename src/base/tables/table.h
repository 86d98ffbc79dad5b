// A table that every printing command can show four ways: table, json, csv, md.
#pragma once

#include <optional>
#include <string>
#include <string_view>
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

// A cell keeps its value for machines and its text for people; an absent cell is empty in CSV, null
// in JSON and "-" in a table.
struct TableCell {
  Json value;        // null: absent
  std::string text;  // shown in a table and in Markdown; empty: derived from the value

  static TableCell absent() { return {nullptr, ""}; }
  static TableCell of(std::string text);
  static TableCell of(int64_t number);
  // `digits` significant digits in the table; the full value in JSON and CSV. NaN and infinity:
  // absent.
  static TableCell of(double number, int digits = 4);
  static TableCell of(std::optional<double> number, int digits = 4);
};

// The cell's text for people, unescaped: its caller makes it safe (base/text/shown_text.h).
std::string cell_text(const TableCell& cell);

struct Table {
  std::string title;  // printed above in table and md; may be empty
  std::vector<Column> columns;
  std::vector<std::vector<TableCell>> rows;  // each as long as columns

  // JSON: an array of objects. Text ends with a newline. `width`: a table keeps to it if shortening
  // text ("..." in its middle) is enough.
  // CSV is as shown_csv_line() (base/tables/csv.h) has it; JSON alone has every text byte for byte.
  std::string render(OutputFormat format, std::optional<size_t> width = std::nullopt) const;
  Json to_json() const;
};

}  // namespace assay
