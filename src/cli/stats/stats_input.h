// Helpers of the subcommands of `assay stats`: figures, values and counts from text, rows of
// figures.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "stats/distributions/distributions.h"
#include "stats/hypotheses/proportions.h"
#include "stats/hypotheses/tests.h"
#include "stats/samples/intervals.h"
#include "stats/samples/summary.h"

namespace assay::cli {

// A figure's method and inputs, for machines: JSON has them behind the figures of every row.
class Facts {
 public:
  explicit Facts(const std::string& method) { json_["method"] = method; }
  Facts& sides(const std::string& sides) { return set("sides", sides); }
  Facts& confidence(double level) { return set("confidence", level); }
  Facts& sign(const std::string& convention) { return set("sign_convention", convention); }
  Facts& set(const std::string& name, Json value) {
    json_[name] = std::move(value);
    return *this;
  }
  Facts& input(const std::string& name, Json value) {
    json_["inputs"][name] = std::move(value);
    return *this;
  }
  const Json& json() const { return json_; }

 private:
  Json json_ = Json::object();
};

// In JSON a table without rows is one whose figures are null, so that method and inputs are told.
void print_rows(const Table& table, const Facts& facts, OutputFormat format);

// One figure a column, in the order added; a figure that is absent stays in, as null or "-".
class FigureRow {
 public:
  FigureRow& add(const std::string& name, std::optional<double> value, int digits = 5);
  FigureRow& add_count(const std::string& name, int64_t count);
  FigureRow& add_text(const std::string& name, const std::string& text);
  // `prefix`low and `prefix`high.
  FigureRow& add(const std::string& prefix, const std::optional<stats::Interval>& interval);
  // p and ln_p. Below the smallest double p is absent for machines and shown as a power of ten.
  FigureRow& add_p(double p, double log_p, const std::string& suffix = "");
  FigureRow& add_p(const std::optional<stats::TestResult>& test, const std::string& suffix = "");

  // Appends the row to a table of the same columns; an empty one gets them.
  void append_to(Table& table) const;

 private:
  std::vector<Column> columns_;
  std::vector<TableCell> cells_;
};

// "mean,sd,n": sd is 0 or has a square that a double holds, n from 1 to 1e15.
Result<stats::Moments> parse_moments(const std::string& option, const std::string& text);
// Numbers from a list with commas, or from the file of that name (commas, blanks or lines between).
Result<std::vector<double>> parse_values(const std::string& option, const std::string& text);
// "successes/n".
Result<stats::Proportion> parse_proportion(const std::string& option, const std::string& text);
Result<double> parse_number(const std::string& option, std::string_view text);

// For Facts::input(): mean, sd and n, and values as they were given.
Json group_json(const stats::Moments& group, const std::string& values = "");
Json sample_json(const std::vector<double>& sample, const std::string& values);
Json count_json(const stats::Proportion& share);

void add_stats_audit(CLI::App& stats, Selected& selected);

}  // namespace assay::cli
