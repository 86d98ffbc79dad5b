// CSV as RFC 4180 has it.
#include "base/tables/csv.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/text/shown_text.h"

namespace assay {
namespace {

bool is_number(std::string_view text) {
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return false;
  }
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end && std::isfinite(value);
}

bool is_formula(std::string_view text) {
  constexpr std::array<std::string_view, 8> kStarts = {"=",      "@",      "+",      "-",
                                                       "\uFF1D", "\uFF20", "\uFF0B", "\uFF0D"};
  return std::ranges::any_of(kStarts, [&](auto start) { return text.starts_with(start); }) &&
         !is_number(text);
}

}  // namespace

std::string shown_csv_line(const std::vector<std::string>& fields, size_t most_bytes) {
  std::vector<std::string> shown;
  for (const std::string& field : fields) {
    const char* const quote = is_formula(field) ? "'" : "";
    shown.push_back(quote + shown_line(field, most_bytes));
  }
  return csv_line(shown);
}

std::string csv_line(const std::vector<std::string>& fields) {
  std::string line;
  for (size_t i = 0; i < fields.size(); ++i) {
    if (i > 0) line += ',';
    const std::string& field = fields[i];
    if (field.find_first_of(",\"\r\n") == std::string::npos) {
      line += field;
      continue;
    }
    line += '"';
    for (char c : field) {
      if (c == '"') line += '"';
      line += c;
    }
    line += '"';
  }
  line += '\n';
  return line;
}

Result<std::vector<std::string>> CsvReader::next() {
  std::vector<std::string_view> fields;
  ASSAY_CHECK(next(fields));
  return std::vector<std::string>(fields.begin(), fields.end());
}

Status CsvReader::next(std::vector<std::string_view>& fields) {
  fields.clear();
  const size_t end = rest_.find('\n');
  const std::string_view record = rest_.substr(0, end);
  if (end == std::string_view::npos || record.find('"') != std::string_view::npos ||
      record.ends_with('\r')) {
    return next_quoted(fields);
  }
  line_ = ++lines_read_;
  size_t begin = 0;
  for (size_t comma = record.find(delimiter_); comma != std::string_view::npos;
       comma = record.find(delimiter_, begin)) {
    fields.push_back(record.substr(begin, comma - begin));
    begin = comma + 1;
    if (fields.size() >= most_fields_) return too_many_fields();
  }
  fields.push_back(record.substr(begin));
  rest_.remove_prefix(end + 1);
  return {};
}

std::unexpected<Error> CsvReader::too_many_fields() {
  rest_ = {};
  return bad_input("{} line {}: expected at most {} fields, found more", object_, line_,
                   most_fields_);
}

Status CsvReader::next_quoted(std::vector<std::string_view>& fields) {
  line_ = lines_read_ + 1;
  unquoted_.assign(1, "");
  size_t i = 0;
  bool quoted = false;
  for (; i < rest_.size(); ++i) {
    const char c = rest_[i];
    if (c == '\n') ++lines_read_;
    if (quoted) {
      if (c != '"') {
        unquoted_.back() += c;
      } else if (i + 1 < rest_.size() && rest_[i + 1] == '"') {
        unquoted_.back() += '"';
        ++i;
      } else {
        quoted = false;
      }
    } else if (c == '"' && unquoted_.back().empty()) {
      quoted = true;
    } else if (c == delimiter_) {
      if (unquoted_.size() >= most_fields_) return too_many_fields();
      unquoted_.emplace_back();
    } else if (c == '\n') {
      if (unquoted_.back().ends_with('\r')) unquoted_.back().pop_back();
      rest_.remove_prefix(i + 1);
      fields.assign(unquoted_.begin(), unquoted_.end());
      return {};
    } else {
      unquoted_.back() += c;
    }
  }
  rest_ = {};
  return bad_input("{} line {}: expected {}, found the end of the file", object_, line_,
                   quoted ? "a closing quote" : "a line end");
}

}  // namespace assay
