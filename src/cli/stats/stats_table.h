// The subcommands of `assay stats` as a table: what each takes, and the function that makes figures
// of it.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "cli/stats/stats_input.h"

namespace assay::cli {

// An option of a subcommand.
struct Parameter {
  enum class Kind {
    kGroup,   // --NAME mean,sd,n or --NAME-values; one of them is needed
    kEither,  // the same two options, none of them needed
    kGroups,  // the same, each as often as there are groups
    kSample,  // --NAME or --NAME-values: values, a list or a file
    kText,
    kFlag,
    kLevel,     // between 0 and 1
    kNumber,    // finite
    kPositive,  // above 0
    kShare,     // 0 to 1
    kWhole,     // `least` to `most`
  };
  Kind kind;
  std::string name;  // without dashes
  std::string meaning = "";
  std::string type = "";                // of the value, in the help
  std::string fallback = "";            // empty: none
  bool needed = false;                  // of a kind that doesn't say so itself
  std::vector<std::string> words = {};  // of a text that is one of them
  uint64_t least = 0;
  uint64_t most = 0;
};

Parameter group(const std::string& name);
Parameter sample(const std::string& name);
Parameter counted_share(const std::string& name);  // "count out of a total"
Parameter level(const std::string& name, const std::string& meaning, double fallback);
Parameter confidence(const std::string& meaning);  // --confidence, 0.95

Parameter resamples(uint64_t most);
Parameter seed();

// The options of one call. Groups, samples and counts that were read stand in facts() as inputs.
class Given {
 public:
  bool has(const std::string& name) const { return !text(name).empty(); }
  // Given in either of a group's two forms.
  bool has_group(const std::string& name) const { return has(name) || has(name + "-values"); }
  const std::string& text(const std::string& name) const { return texts_.at(name); }
  // The option was given, or has a fallback.
  double number(const std::string& name) const;
  std::optional<double> number_if_given(const std::string& name) const;
  uint64_t whole(const std::string& name) const;
  bool flag(const std::string& name) const { return has(name); }

  Result<stats::Moments> group(const std::string& name);
  Result<std::vector<double>> sample(const std::string& name);
  Result<stats::Proportion> count(const std::string& name);
  // The option may be repeated.
  const std::vector<std::string>& each(const std::string& name) const { return lists_.at(name); }

  // The method, the inputs that were read, and the confidence of a subcommand that has one.
  Facts facts(const std::string& method) const;

 private:
  friend class StatsOptions;
  std::map<std::string, std::string> texts_;
  std::map<std::string, std::vector<std::string>> lists_;
  Json inputs_ = Json::object();
};

// Moments of a list or a file of values; those of one value have a variance of 0.
Result<stats::Moments> moments_of_values(const std::string& option, const std::string& values);

struct StatsAnswer {
  Table table;
  Facts facts;

  StatsAnswer(const FigureRow& row, Facts about) : facts(std::move(about)) { row.append_to(table); }
  StatsAnswer(Table rows, Facts about) : table(std::move(rows)), facts(std::move(about)) {}
};

struct StatsSubcommand {
  std::string name;
  std::string summary;
  std::vector<Parameter> parameters;
  std::function<Result<StatsAnswer>(Given& given)> answer;
};

std::vector<StatsSubcommand> stats_of_groups();
std::vector<StatsSubcommand> stats_of_samples();
std::vector<StatsSubcommand> stats_of_counts();
std::vector<StatsSubcommand> stats_of_power();
StatsSubcommand stats_of_pairs();
StatsSubcommand stats_of_two_factors();

void add_stats_subcommand(CLI::App& stats, const StatsSubcommand& subcommand, Selected& selected);

}  // namespace assay::cli
