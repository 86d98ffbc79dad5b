// assay stats: power, sample sizes and least differences of a comparison of two groups.
#include <cmath>

#include "base/text/text.h"
#include "cli/stats/stats_table.h"
#include "stats/power/power.h"

namespace assay::cli {
namespace {

using Kind = Parameter::Kind;

// "30,30", or "30" for both.
Result<stats::StandardError> parse_sizes(const std::string& text, double sd) {
  std::vector<std::string> parts = split(text, ',');
  if (parts.size() == 1) parts.push_back(parts[0]);
  if (parts.size() != 2) {
    return bad_input("--n: expected one or two numbers, found {}", quoted_excerpt(text));
  }
  double inverse = 0;
  double total = 0;
  for (const std::string& part : parts) {
    ASSAY_TRY(const double n, parse_number("--n", part));
    if (!(n >= 2 && n <= 1e12) || n != std::floor(n)) {
      return bad_input("--n: expected whole numbers of at least 2 and at most 1e12, found {}",
                       quoted_excerpt(part));
    }
    inverse += 1 / n;
    total += n;
  }
  return stats::StandardError{sd * std::sqrt(inverse), total - 2};
}

Facts design_facts(const Given& in, const char* method) {
  Facts facts = in.facts(method);
  facts.sides("two-sided").set("alpha", in.number("alpha"));
  facts.input("n", in.text("n")).input("sd", in.number("sd"));
  return facts;
}

std::unexpected<Error> out_of_reach() {
  return bad_input("power: expected a design within reach of the noncentral t distribution");
}

Result<StatsAnswer> power(Given& in) {
  ASSAY_TRY(const stats::StandardError error, parse_sizes(in.text("n"), in.number("sd")));
  const double difference = in.number("difference");
  const auto power = stats::t_test_power(difference, error, in.number("alpha"));
  if (!power) return out_of_reach();
  FigureRow row;
  row.add("difference", difference).add("se", error.value).add("df", error.df, 8);
  Facts facts = design_facts(in, "power of Student's t test");
  return StatsAnswer(row.add("power", *power), facts.input("difference", difference));
}

Result<StatsAnswer> mde(Given& in) {
  ASSAY_TRY(const stats::StandardError error, parse_sizes(in.text("n"), in.number("sd")));
  const double power = in.number("power");
  const auto smallest = stats::minimum_detectable_difference(error, in.number("alpha"), power);
  if (!smallest) return out_of_reach();
  FigureRow row;
  row.add("mde", *smallest).add("mde_in_sd", *smallest / in.number("sd")).add("df", error.df, 8);
  Facts facts = design_facts(in, "minimum detectable difference of Student's t test");
  return StatsAnswer(row, facts.input("power", power));
}

Result<StatsAnswer> repetitions(Given& in) {
  const double d = in.number("d");
  const double power = in.number("power");
  const auto needed = stats::repetitions_needed(d, in.number("alpha"), power);
  if (!needed) return out_of_reach();
  Facts facts = in.facts("repetitions that Student's t test needs");
  facts.sides("two-sided").set("alpha", in.number("alpha")).input("d", d).input("power", power);
  return StatsAnswer(FigureRow().add("d", d).add_count("n_each", *needed), std::move(facts));
}

}  // namespace

std::vector<StatsSubcommand> stats_of_power() {
  const Parameter sizes = {.kind = Kind::kText,
                           .name = "n",
                           .meaning = "number of values in each group",
                           .type = "N_A[,N_B]",
                           .needed = true};
  const Parameter sd = {.kind = Kind::kPositive,
                        .name = "sd",
                        .meaning = "standard deviation of both groups",
                        .fallback = "1"};
  const Parameter alpha = level("alpha", "two-sided level", 0.05);
  const Parameter wanted = level("power", "power: probability of finding the difference", 0.8);
  const auto needed = [](const char* name, const char* meaning) {
    return Parameter{.kind = Kind::kNumber, .name = name, .meaning = meaning, .needed = true};
  };
  return {{"power",
           "probability that Student's t test finds a difference",
           {sizes, sd, alpha, needed("difference", "true difference between the means")},
           power},
          {"mde",
           "smallest difference that Student's t test finds with a given power",
           {sizes, sd, alpha, wanted},
           mde},
          {"repetitions",
           "values per group that Student's t test needs to find a difference",
           {needed("d", "difference in standard deviations"), alpha, wanted},
           repetitions}};
}

}  // namespace assay::cli
