// llama-bench's SQL: INSERT statements with the columns' names, and values in single quotes.
#include "base/text/text.h"
#include "import/formats/readers.h"

namespace assay {
namespace {

class SqlReader {
 public:
  SqlReader(std::string_view text, std::string object) : rest_(text), object_(std::move(object)) {}

  // Goes behind the next INSERT INTO llama_bench; false: there is none.
  bool next_insert() {
    constexpr std::string_view kInsert = "INSERT INTO llama_bench";
    const size_t at = rest_.find(kInsert);
    if (at == std::string_view::npos) return false;
    rest_.remove_prefix(at + kInsert.size());
    return true;
  }

  Result<std::vector<std::string>> list() {
    ASSAY_CHECK(expect("("));
    std::vector<std::string> values;
    while (true) {
      ASSAY_TRY(std::string value, item());
      values.push_back(std::move(value));
      if (values.size() > static_cast<size_t>(kMostJsonMembers)) {
        return bad_input("{}: expected at most {} columns, found more", object_, kMostJsonMembers);
      }
      skip_space();
      if (rest_.starts_with(')')) break;
      ASSAY_CHECK(expect(","));
    }
    ASSAY_CHECK(expect(")"));
    return values;
  }

  Status expect(std::string_view word) {
    skip_space();
    if (!rest_.starts_with(word)) {
      return bad_input("{}: expected \"{}\" in an INSERT statement, found {}", object_, word,
                       rest_.empty() ? "the end" : quoted_excerpt(rest_.substr(0, 40)));
    }
    rest_.remove_prefix(word.size());
    return {};
  }

  // Behind a row of values: true if another one follows. Anything but the statement's end is
  // refused, since a part that isn't read would be missing without a word.
  Result<bool> another_row() {
    skip_space();
    if (rest_.starts_with(',')) {
      rest_.remove_prefix(1);
      return true;
    }
    if (!rest_.empty()) ASSAY_CHECK(expect(";"));
    return false;
  }

 private:
  void skip_space() {
    const size_t first = rest_.find_first_not_of(" \t\r\n");
    rest_.remove_prefix(first == std::string_view::npos ? rest_.size() : first);
  }

  // A text in quotes, in which a doubled quote is one, or a bare word; NULL is nothing. Names may
  // be in double quotes or backticks, as other programs write them.
  Result<std::string> item() {
    skip_space();
    std::string value;
    const char quote = rest_.empty() ? ' ' : rest_[0];
    if (quote != '\'' && quote != '"' && quote != '`') {
      value = rest_.substr(0, rest_.find_first_of(",) \t\r\n"));
      rest_.remove_prefix(value.size());
      if (value.find('\'') != std::string::npos) {
        return bad_input("{}: expected a text in quotes or a number, found {}", object_,
                         quoted_excerpt(value));
      }
      return value == "NULL" ? "" : value;
    }
    rest_.remove_prefix(1);
    while (true) {
      const size_t end = rest_.find(quote);
      if (end == std::string_view::npos) {
        return bad_input("{}: expected the end of a text in quotes, found the end of the file",
                         object_);
      }
      value += rest_.substr(0, end);
      rest_.remove_prefix(end + 1);
      if (!rest_.starts_with(quote)) return value;
      value += quote;
      rest_.remove_prefix(1);
    }
  }

  std::string_view rest_;
  std::string object_;
};

}  // namespace

Result<std::vector<Json>> llama_bench_sql_rows(const SourceText& source) {
  SqlReader reader(source.text, source.path);
  std::vector<Json> rows;
  while (reader.next_insert()) {
    ASSAY_TRY(const std::vector<std::string> columns, reader.list());
    ASSAY_CHECK(reader.expect("VALUES"));
    for (bool more = true; more;) {
      ASSAY_TRY(const std::vector<std::string> values, reader.list());
      if (columns.size() != values.size()) {
        return bad_input("{}: row {}: expected {} values, found {}", source.path, rows.size() + 1,
                         columns.size(), values.size());
      }
      if (static_cast<int64_t>(rows.size() * columns.size()) > kMostJsonValues) {
        return bad_input("{}: expected at most {} values, found more", source.path,
                         kMostJsonValues);
      }
      Json& row = rows.emplace_back(Json::object());
      for (size_t i = 0; i < columns.size(); ++i) row[columns[i]] = values[i];
      ASSAY_TRY(more, reader.another_row());
    }
  }
  return rows;
}

}  // namespace assay
