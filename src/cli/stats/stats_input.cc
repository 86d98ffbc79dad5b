// Reading groups, printing figures.
#include "cli/stats/stats_input.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/files/files.h"
#include "base/text/text.h"

namespace assay::cli {
namespace {

std::string power_of_ten(double log_p) {
  const double decimal = log_p / std::numbers::ln10;
  const double exponent = std::floor(decimal);
  return fmt::format("{:.2f}e{:.0f}", std::pow(10, decimal - exponent), exponent);
}

std::vector<std::string> words(const std::string& text) {
  std::vector<std::string> found(1);
  for (const char c : text) {
    if (c == ',' || c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == ';') {
      if (!found.back().empty()) found.emplace_back();
    } else {
      found.back() += c;
    }
  }
  if (found.back().empty()) found.pop_back();
  return found;
}

}  // namespace

FigureRow& FigureRow::add(const std::string& name, std::optional<double> value, int digits) {
  columns_.push_back({name, Align::kRight});
  cells_.push_back(TableCell(value, digits));
  const bool is_whole = value && *value == std::floor(*value) && std::abs(*value) < 1e9;
  if (is_whole) cells_.back().text = fmt::format("{:.0f}", *value);
  return *this;
}

FigureRow& FigureRow::add_count(const std::string& name, int64_t count) {
  columns_.push_back({name, Align::kRight});
  cells_.push_back(count);
  return *this;
}

FigureRow& FigureRow::add_text(const std::string& name, const std::string& text) {
  columns_.push_back({name, Align::kLeft});
  cells_.push_back(text);
  return *this;
}

FigureRow& FigureRow::add(const std::string& prefix,
                          const std::optional<stats::Interval>& interval) {
  add(prefix + "low", interval ? std::optional(interval->low) : std::nullopt);
  return add(prefix + "high", interval ? std::optional(interval->high) : std::nullopt);
}

FigureRow& FigureRow::add_p(double p, double log_p, const std::string& suffix) {
  columns_.push_back({"p" + suffix, Align::kRight});
  cells_.push_back(p > 0 ? TableCell(p, 4) : TableCell{nullptr, power_of_ten(log_p)});
  return add("ln_p" + suffix, log_p, 6);
}

FigureRow& FigureRow::add_p(const std::optional<stats::TestResult>& test,
                            const std::string& suffix) {
  if (test) return add_p(test->p, test->log_p, suffix);
  add("p" + suffix, std::optional<double>());
  return add("ln_p" + suffix, std::optional<double>());
}

void FigureRow::append_to(Table& table) const {
  if (table.columns.empty()) table.columns = columns_;
  table.rows.push_back(cells_);
}

void print_rows(const Table& table, const Facts& facts, OutputFormat format) {
  if (format != OutputFormat::kJson) {
    print_table(table, format);
    return;
  }
  Json rows = table.to_json();
  if (rows.empty()) {
    rows.push_back(Json::object());
    for (const Column& column : table.columns) rows[0][column.name] = nullptr;
  }
  for (Json& row : rows) row.update(facts.json());
  fmt::print("{}", to_json_text(rows));
}

Result<double> parse_number(const std::string& option, std::string_view text) {
  double value = 0;
  std::string_view digits = text;
  if (digits.starts_with('+')) digits.remove_prefix(1);
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (failure != std::errc() || end != digits.data() + digits.size() || !std::isfinite(value)) {
    return bad_input("{}: expected a number, found {}", option, quoted_excerpt(text));
  }
  return value;
}

Json group_json(const stats::Moments& group, const std::string& values) {
  Json json = {{"mean", group.mean}, {"sd", std::sqrt(group.variance)}, {"n", group.n}};
  if (!values.empty()) json["values"] = values;
  return json;
}

Json sample_json(const std::vector<double>& sample, const std::string& values) {
  Json json = {{"n", static_cast<int64_t>(sample.size())}};
  if (!values.empty()) json["values"] = values;
  return json;
}

Json count_json(const stats::Proportion& share) {
  return {{"count", share.successes}, {"n", share.n}};
}

Result<stats::Moments> parse_moments(const std::string& option, const std::string& text) {
  const std::vector<std::string> parts = split(text, ',');
  if (parts.size() != 3) {
    return bad_input("{}: expected mean,sd,n, found {}", option, quoted_excerpt(text));
  }
  ASSAY_TRY(const double mean, parse_number(option + " mean", parts[0]));
  ASSAY_TRY(const double sd, parse_number(option + " sd", parts[1]));
  ASSAY_TRY(const double n, parse_number(option + " n", parts[2]));
  const double square = sd * sd;
  const bool held = std::isfinite(square) && square >= std::numeric_limits<double>::min();
  if (sd < 0 || (sd > 0 && !held)) {
    return bad_input("{} sd: expected a number from 0 to 1e154 (0, or at least 1e-153), found {}",
                     option, quoted_excerpt(parts[1]));
  }
  if (!(n >= 1 && n <= 1e15) || n != std::floor(n)) {
    return bad_input("{} n: expected a whole number from 1 to 1e15, found {}", option,
                     quoted_excerpt(parts[2]));
  }
  return stats::Moments{static_cast<int64_t>(n), mean, sd * sd};
}

Result<std::vector<double>> parse_values(const std::string& option, const std::string& text) {
  std::string list = text;
  std::string where = option;
  std::error_code ignored;
  if (std::filesystem::is_regular_file(text, ignored)) {
    ASSAY_TRY(list, read_file(text));
    where = text;
  }
  std::vector<double> values;
  for (const std::string& word : words(list)) {
    auto value = parse_number(where, word);
    if (!value) {
      return bad_input(
          "{} value {}: expected a number (or the name of a file of numbers), found {}", where,
          values.size() + 1, quoted_excerpt(word));
    }
    values.push_back(*value);
  }
  if (values.empty()) return bad_input("{}: expected numbers, found none", where);
  return values;
}

Result<stats::Proportion> parse_proportion(const std::string& option, const std::string& text) {
  const std::vector<std::string> parts = split(text, '/');
  const auto whole = [](const std::string& part) -> std::optional<int64_t> {
    int64_t value = 0;
    const auto [end, failure] = std::from_chars(part.data(), part.data() + part.size(), value);
    if (failure != std::errc() || end != part.data() + part.size()) return std::nullopt;
    return value;
  };
  const auto successes = whole(parts[0]);
  const auto n = parts.size() == 2 ? whole(parts[1]) : std::nullopt;
  constexpr int64_t kMost = 10'000'000;
  if (!successes || !n || *successes < 0 || *successes > *n || *n < 1 || *n > kMost) {
    return bad_input("{}: expected a count of a total, as 5/30, at most {}, found {}", option,
                     kMost, quoted_excerpt(text));
  }
  return stats::Proportion{*successes, *n};
}

}  // namespace assay::cli
