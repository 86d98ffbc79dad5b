// CSV as RFC 4180 has it: comma, double quotes where needed, LF line ends when written, CRLF
// accepted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace assay {

// One line with its line end; fields with comma, quote, CR or LF are quoted. The fields are the
// bytes given: for files that a program reads back, such as a bundle's metrics.csv.
std::string csv_line(const std::vector<std::string>& fields);

// The same for people, who open the file in a spreadsheet or look at it: each field as shown_line()
// has it, cut at `most_bytes`, and with "'" in front where it begins with =, @, + or - (or their
// full-width forms) and isn't a number, because a spreadsheet would run it as a formula. Numbers
// stay as they are.
std::string shown_csv_line(const std::vector<std::string>& fields, size_t most_bytes = SIZE_MAX);

// Reads records out of `text` one after the other. A record whose closing quote or line end is
// missing is an error for next(): a half-written last row must not pass for a whole one.
class CsvReader {
 public:
  // `object` names the text in errors. The text must outlive the reader. A record of more fields
  // than `most_fields` is an error before they take memory.
  CsvReader(std::string_view text, std::string object, char delimiter = ',',
            size_t most_fields = SIZE_MAX)
      : rest_(text), object_(std::move(object)), delimiter_(delimiter), most_fields_(most_fields) {}
  bool done() const { return rest_.empty(); }
  Result<std::vector<std::string>> next();
  // The same without copies: `fields` replaced by views that hold until the next call.
  Status next(std::vector<std::string_view>& fields);
  size_t line() const { return line_; }  // 1-based line of the record that next() gave last

 private:
  // A record in which some field is quoted or ends in CR.
  Status next_quoted(std::vector<std::string_view>& fields);
  std::unexpected<Error> too_many_fields();

  std::string_view rest_;
  std::string object_;
  char delimiter_;
  size_t most_fields_;
  std::vector<std::string> unquoted_;
  size_t line_ = 0;
  size_t lines_read_ = 0;
};

}  // namespace assay
