// The fields of a CSV or of a text's Markdown tables.
#include "stats/audit/published_records.h"

#include <algorithm>

#include "base/tables/csv.h"
#include "base/text/text.h"
#include "stats/audit/printed.h"

namespace assay::stats {
namespace {

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(trim(line));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// "|---|:--:|": the line below a Markdown header.
bool is_rule(std::string_view line) {
  return line.starts_with('|') && line.contains('-') &&
         line.find_first_not_of("|-: \t") == std::string_view::npos;
}

bool begins_table(std::span<const std::string_view> lines, size_t i) {
  return lines[i].starts_with('|') && i + 1 < lines.size() && is_rule(lines[i + 1]);
}

std::vector<std::string> cells_of(std::string_view line) {
  line.remove_prefix(1);
  std::vector<std::string> cells = {""};
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\\' && i + 1 < line.size() && line[i + 1] == '|') {
      cells.back() += line[++i];
    } else if (line[i] == '|') {
      cells.emplace_back();
    } else {
      cells.back() += line[i];
    }
  }
  if (trim(cells.back()).empty()) cells.pop_back();  // behind the last bar
  for (std::string& cell : cells) cell = std::string(trim(cell));
  return cells;
}

std::vector<PublishedRecords> read_markdown(
    std::span<const std::string_view> lines,
    const std::function<bool(const PublishedRecord& header)>& is_wanted) {
  std::vector<PublishedRecords> tables;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (!begins_table(lines, i)) continue;
    PublishedRecords table{{i + 1, cells_of(lines[i])}, {}};
    for (i += 2; i < lines.size() && lines[i].starts_with('|'); ++i) {
      table.rows.push_back({i + 1, cells_of(lines[i])});
    }
    --i;
    if (is_wanted(table.header)) tables.push_back(std::move(table));
  }
  return tables;
}

// Comments become empty lines, so that errors still name the right one. A line inside of quotes is
// no comment.
std::string without_comments(std::string_view text) {
  std::string kept;
  bool quoted = false;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    if (quoted || !trim(line).starts_with('#')) {
      kept += line;
      quoted = quoted != (std::ranges::count(line, '"') % 2 == 1);
    }
    kept += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return kept;
}

Result<PublishedRecords> read_csv(std::string_view text, const std::string& object) {
  const std::string kept = without_comments(text);
  CsvReader reader(kept, object);
  PublishedRecords table;
  while (!reader.done()) {
    ASSAY_TRY(std::vector<std::string> fields, reader.next());
    if (fields.size() == 1 && trim(fields[0]).empty()) continue;
    for (std::string& field : fields) field = std::string(trim(field));
    PublishedRecord record{reader.line(), std::move(fields)};
    if (table.header.line == 0) {
      table.header = std::move(record);
    } else {
      table.rows.push_back(std::move(record));
    }
  }
  if (table.header.line == 0) {
    return bad_input("{}: expected a header line, found {}", object,
                     text.empty() ? "an empty file" : "none");
  }
  return table;
}

}  // namespace

Result<std::vector<PublishedRecords>> read_published_records(
    std::string_view text, const std::string& object,
    const std::function<bool(const PublishedRecord& header)>& is_wanted) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // a byte order mark
  const std::vector<std::string_view> lines = lines_of(text);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (begins_table(lines, i)) return read_markdown(lines, is_wanted);
  }
  ASSAY_TRY(PublishedRecords table, read_csv(text, object));
  return std::vector<PublishedRecords>{std::move(table)};
}

}  // namespace assay::stats
