// assay stats: power, sample sizes and least differences of a comparison of two groups.
#include <cmath>

#include "base/text/text.h"
#include "cli/stats/stats_input.h"
#include "stats/power/power.h"

namespace assay::cli {
namespace {

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

struct Design {
  std::string sizes;
  double sd = 1;
  std::shared_ptr<double> alpha;
};

std::shared_ptr<Design> add_design(CLI::App& command) {
  auto design = std::make_shared<Design>();
  command.add_option("--n", design->sizes, "number of values in each group")
      ->type_name("N_A[,N_B]")
      ->required();
  command.add_option("--sd", design->sd, "standard deviation of both groups (default 1)")
      ->check(check_number_above_zero);
  design->alpha = add_level(command, "--alpha", 0.05, "two-sided level");
  return design;
}

Facts described(const std::string& method, const Design& design) {
  Facts facts(method);
  facts.sides("two-sided").set("alpha", *design.alpha);
  facts.input("n", design.sizes).input("sd", design.sd);
  return facts;
}

std::unexpected<Error> out_of_reach() {
  return bad_input("power: expected a design within reach of the noncentral t distribution");
}

void add_power(CLI::App& parent, Selected& selected) {
  CLI::App* command =
      parent.add_subcommand("power", "probability that Student's t test finds a difference");
  const auto design = add_design(*command);
  const auto difference = std::make_shared<double>();
  command->add_option("--difference", *difference, "true difference between the means")
      ->check(check_number)
      ->required();
  set_body(*command, selected, [=](OutputFormat format) -> Result<int> {
    ASSAY_TRY(const stats::StandardError error, parse_sizes(design->sizes, design->sd));
    const auto power = stats::t_test_power(*difference, error, *design->alpha);
    if (!power) return out_of_reach();
    FigureRow row;
    row.add("difference", *difference).add("se", error.value).add("df", error.df, 8);
    Facts facts = described("power of Student's t test", *design);
    return row.add("power", *power).print(format, facts.input("difference", *difference));
  });
}

void add_mde(CLI::App& parent, Selected& selected) {
  CLI::App* command = parent.add_subcommand(
      "mde", "smallest difference that Student's t test finds with a given power");
  const auto design = add_design(*command);
  const auto power =
      add_level(*command, "--power", 0.8, "power: probability of finding the difference");
  set_body(*command, selected, [=](OutputFormat format) -> Result<int> {
    ASSAY_TRY(const stats::StandardError error, parse_sizes(design->sizes, design->sd));
    const auto smallest = stats::minimum_detectable_difference(error, *design->alpha, *power);
    if (!smallest) return out_of_reach();
    FigureRow row;
    row.add("mde", *smallest).add("mde_in_sd", *smallest / design->sd).add("df", error.df, 8);
    Facts facts = described("minimum detectable difference of Student's t test", *design);
    return row.print(format, facts.input("power", *power));
  });
}

void add_repetitions(CLI::App& parent, Selected& selected) {
  CLI::App* command = parent.add_subcommand(
      "repetitions", "values per group that Student's t test needs to find a difference");
  const auto d = std::make_shared<double>();
  command->add_option("--d", *d, "difference in standard deviations")
      ->check(check_number)
      ->required();
  const auto alpha = add_level(*command, "--alpha", 0.05, "two-sided level");
  const auto power =
      add_level(*command, "--power", 0.8, "power: probability of finding the difference");
  set_body(*command, selected, [=](OutputFormat format) -> Result<int> {
    const auto needed = stats::repetitions_needed(*d, *alpha, *power);
    if (!needed) return out_of_reach();
    FigureRow row;
    Facts facts("repetitions that Student's t test needs");
    facts.sides("two-sided").set("alpha", *alpha);
    facts.input("d", *d).input("power", *power);
    return row.add("d", *d).add_count("n_each", *needed).print(format, facts);
  });
}

}  // namespace

void add_stats_power(CLI::App& parent, Selected& selected) {
  add_power(parent, selected);
  add_mde(parent, selected);
  add_repetitions(parent, selected);
}

}  // namespace assay::cli
