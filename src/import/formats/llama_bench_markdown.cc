// llama-bench's default output: Markdown tables with a rate and its deviation a test.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/text/text.h"
#include "import/formats/readers.h"

namespace assay {
namespace {

std::string_view without_spaces(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

// Texts between the bars of a line.
std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> cells;
  line = without_spaces(line);
  line.remove_prefix(1);
  while (!line.empty() && cells.size() < kMostCsvColumns) {
    const size_t bar = line.find('|');
    cells.emplace_back(without_spaces(line.substr(0, bar)));
    line.remove_prefix(bar == std::string_view::npos ? line.size() : bar + 1);
  }
  return cells;
}

bool has(const std::vector<std::string>& cells, std::string_view name) {
  return std::ranges::find(cells, name) != cells.end();
}

bool is_header(std::string_view line) {
  if (!line.starts_with('|')) return false;
  const std::vector<std::string> cells = cells_of(line);
  return has(cells, "model") && has(cells, "test") && has(cells, "t/s");
}

// Calls `f` for each line until it returns false.
template <typename F>
void for_each_line(std::string_view text, F f) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    if (!f(text.substr(0, end))) return;
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
}

// The number behind `mark`, which it takes from the text with it.
std::optional<int64_t> take_count(std::string_view mark, std::string_view& text) {
  int64_t count = 0;
  if (!text.starts_with(mark)) return std::nullopt;
  const std::string_view behind = without_spaces(text.substr(mark.size()));  // once "pp 512"
  const char* const limit = behind.data() + behind.size();
  const auto [end, error] = std::from_chars(behind.data(), limit, count);
  if (error != std::errc() || count < 0 || count > 1'000'000'000) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return count;
}

// Lengths of "pp512", "tg128", "pp512+tg128" and "tg128 @ d4096".
Status put_lengths(std::string_view test, const std::string& object, Json& row) {
  std::string_view left = test;
  const auto prompt = take_count("pp", left);
  if (prompt && left.starts_with('+')) left.remove_prefix(1);
  const auto generated = take_count("tg", left);
  const auto depth = take_count(" @ d", left);
  if ((!prompt && !generated) || !left.empty()) {
    return bad_input("{}: expected a test such as pp512, tg128 or pp512+tg128 @ d4096, found {}",
                     object, quoted_excerpt(test));
  }
  row["n_prompt"] = prompt.value_or(0);
  row["n_gen"] = generated.value_or(0);
  row["n_depth"] = depth.value_or(0);
  return {};
}

// The time of all tokens at the mean rate.
Status put_mean(std::string_view cell, const std::string& object, Json& row) {
  const std::string_view number = without_spaces(cell.substr(0, cell.find("\u00b1")));
  double rate = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), rate);
  if (error != std::errc() || end != number.data() + number.size() || !(rate > 0)) {
    return bad_input("{}: expected a rate such as 123.45 \u00b1 6.78 at t/s, found {}", object,
                     quoted_excerpt(cell));
  }
  const auto tokens = row["n_prompt"].get<int64_t>() + row["n_gen"].get<int64_t>();
  row["avg_ns"] = std::llround(std::min(static_cast<double>(tokens) / rate * 1e9, 9e18));
  return {};
}

// "build: 4d0dbf6b (7154)", behind the tables.
void put_build(std::string_view line, std::vector<Json>& rows) {
  const size_t bracket = line.find(" (");
  const std::string_view commit = without_spaces(line.substr(0, bracket));
  std::string_view number;
  if (bracket != std::string_view::npos) {
    number = line.substr(bracket + 2);
    number = number.substr(0, number.find(')'));
  }
  for (Json& row : rows) {
    row["build_commit"] = commit;
    row["build_number"] = number;
  }
}

Result<Json> row_of(const std::vector<std::string>& header, const std::vector<std::string>& cells,
                    const std::string& object) {
  if (cells.size() != header.size()) {
    return bad_input("{}: expected {} as in the header, found {}", object,
                     counted(std::ssize(header), "cell"), cells.size());
  }
  // Columns that have other names in the other outputs; the model's type stands for its file.
  static const std::map<std::string, std::string> kNames = {{"model", "model_type"},
                                                            {"size", "model_size"},
                                                            {"params", "model_n_params"},
                                                            {"backend", "backends"},
                                                            {"threads", "n_threads"}};
  Json row = Json::object();
  for (size_t i = 0; i < header.size(); ++i) {
    if (header[i] == "test") {
      ASSAY_CHECK(put_lengths(cells[i], object, row));
    } else if (header[i] == "t/s") {
      ASSAY_CHECK(put_mean(cells[i], object, row));
    } else {
      const auto named = kNames.find(header[i]);
      row[named == kNames.end() ? header[i] : named->second] = cells[i];
      if (header[i] == "model") row["model_filename"] = cells[i];
    }
  }
  return row;
}

}  // namespace

bool is_llama_bench_markdown(std::string_view text) {
  bool found = false;
  for_each_line(text, [&](std::string_view line) {
    found = is_header(line);
    return !found;
  });
  return found;
}

Result<std::vector<Json>> llama_bench_markdown_rows(const SourceText& source) {
  std::vector<Json> rows;
  std::vector<std::string> header;
  Status status;
  int64_t number = 0;
  for_each_line(source.text, [&](std::string_view line) {
    ++number;
    constexpr std::string_view kBuild = "build: ";
    if (line.starts_with(kBuild)) put_build(line.substr(kBuild.size()), rows);
    if (!line.starts_with('|')) return true;
    if (is_header(line)) {
      header = cells_of(line);
    } else if (!header.empty() && !line.starts_with("| -")) {
      auto row = row_of(header, cells_of(line), fmt::format("{} line {}", source.path, number));
      if (row) rows.push_back(*std::move(row));
      if (!row) status = std::unexpected(row.error());
    }
    return status.has_value() &&
           static_cast<int64_t>(rows.size() * header.size()) <= kMostJsonValues;
  });
  ASSAY_CHECK(std::move(status));
  return rows;
}

}  // namespace assay
