// Helpers of the subcommands of `assay stats`: groups from figures or values, one-line results.
#pragma once

#include <memory>
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
Result<int> print_rows(const Table& table, const Facts& facts, OutputFormat format);

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
  Result<int> print(OutputFormat format, const Facts& facts) const;

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

// Checks of an option's text: CLI11's own conversions don't look at nan, infinity, or a sign before
// an unsigned number.
std::string check_number(const std::string& text);  // finite
std::string check_number_above_zero(const std::string& text);
std::string check_share(const std::string& text);  // 0 to 1
CLI::Validator check_whole(uint64_t low, uint64_t high);

// A group that is given as figures (--a) or as values (--a-values).
struct GroupInput {
  std::string option;  // "--a"
  std::string figures;
  std::string values;

  Result<stats::Moments> moments() const;
  bool has_values() const { return !values.empty(); }
  Result<std::vector<double>> sample() const { return parse_values(option + "-values", values); }
};
// For Facts::input(): mean, sd and n, and values as they were given.
Json group_json(const stats::Moments& group, const std::string& values = "");
Json sample_json(const std::vector<double>& sample, const std::string& values);
// Declares --NAME and --NAME-values; exactly one is needed.
std::shared_ptr<GroupInput> add_group(CLI::App& command, const std::string& name);
// Declares --NAME as values alone.
std::shared_ptr<GroupInput> add_sample(CLI::App& command, const std::string& name);

// A level of confidence or significance, between 0 and 1.
std::shared_ptr<double> add_level(CLI::App& command, const std::string& name, double fallback,
                                  const std::string& meaning);

// Declares one subcommand whose body is `run(format)`, with -o.
template <typename Run>
void set_body(CLI::App& command, Selected& selected, const Run& run) {
  const auto format = add_output_format(command);
  command.callback(
      [=, &selected] { selected.body = [=]() -> Result<int> { return run(*format); }; });
}

void add_stats_groups(CLI::App& stats, Selected& selected);
void add_stats_pairs(CLI::App& stats, Selected& selected);
void add_stats_power(CLI::App& stats, Selected& selected);
void add_stats_samples(CLI::App& stats, Selected& selected);
void add_stats_counts(CLI::App& stats, Selected& selected);
void add_stats_anova(CLI::App& stats, Selected& selected);
void add_stats_audit(CLI::App& stats, Selected& selected);

}  // namespace assay::cli
