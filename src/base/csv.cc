// CSV as RFC 4180 has it.
#include "base/csv.h"

namespace assay {

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
  line_ = lines_read_ + 1;
  std::vector<std::string> fields(1);
  size_t i = 0;
  bool quoted = false;
  for (; i < rest_.size(); ++i) {
    const char c = rest_[i];
    if (c == '\n') ++lines_read_;
    if (quoted) {
      if (c != '"') {
        fields.back() += c;
      } else if (i + 1 < rest_.size() && rest_[i + 1] == '"') {
        fields.back() += '"';
        ++i;
      } else {
        quoted = false;
      }
    } else if (c == '"' && fields.back().empty()) {
      quoted = true;
    } else if (c == ',') {
      fields.emplace_back();
    } else if (c == '\n') {
      if (!fields.back().empty() && fields.back().back() == '\r') fields.back().pop_back();
      rest_.remove_prefix(i + 1);
      return fields;
    } else {
      fields.back() += c;
    }
  }
  rest_ = {};
  return bad_input("{} line {}: expected {}, found the end of the file", object_, line_,
                   quoted ? "a closing quote" : "a line end");
}

}  // namespace assay
