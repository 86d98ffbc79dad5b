// assay stats: two or more groups, from figures or values.
#include <cmath>

#include "base/text/text.h"
#include "cli/stats/stats_input.h"
#include "stats/hypotheses/effect.h"
#include "stats/hypotheses/equivalence.h"

namespace assay::cli {
namespace {

using stats::Moments;

struct TwoGroups {
  std::shared_ptr<GroupInput> a;
  std::shared_ptr<GroupInput> b;

  Facts& described(Facts& facts, const Moments& of_a, const Moments& of_b) const {
    return facts.input("a", group_json(of_a, a->values)).input("b", group_json(of_b, b->values));
  }
};

TwoGroups add_two_groups(CLI::App& command) {
  auto a = add_group(command, "a");
  return {std::move(a), add_group(command, "b")};
}

std::unexpected<Error> no_test() {
  return bad_input("a and b: expected at least 2 values in each and a deviation above 0 in one");
}

std::unexpected<Error> overflowing() {
  return bad_input("a and b: expected means whose difference a double holds, found an overflow");
}

void add_t_test(CLI::App& parent, const std::string& name, const std::string& summary,
                std::optional<stats::StandardError> (*error_of)(const Moments&, const Moments&),
                Selected& selected) {
  CLI::App* command = parent.add_subcommand(name, summary);
  const TwoGroups groups = add_two_groups(*command);
  const auto confidence = add_level(*command, "--confidence", 0.95, "confidence of the interval");
  set_body(*command, selected, [=](OutputFormat format) -> Result<int> {
    ASSAY_TRY(const Moments a, groups.a->moments());
    ASSAY_TRY(const Moments b, groups.b->moments());
    if (!std::isfinite(a.mean - b.mean)) return overflowing();
    const auto error = error_of(a, b);
    if (!error) return no_test();
    const double difference = a.mean - b.mean;
    const auto test = stats::t_test(difference, *error);
    FigureRow row;
    row.add("difference", difference)
        .add("se", error->value)
        .add("", stats::t_interval(difference, *error, *confidence))
        .add("t", test ? std::optional(test->statistic) : std::nullopt)
        .add("df", error->df)
        .add_p(test);
    Facts facts(name == "welch" ? "Welch's t test" : "Student's t test");
    facts.sides("two-sided").confidence(*confidence).sign("a - b");
    return row.print(format, groups.described(facts, a, b));
  });
}

void add_effect(CLI::App& parent, Selected& selected) {
  CLI::App* command = parent.add_subcommand(
      "effect", "Cohen's d and Hedges' g with intervals by the noncentral t; Vargha-Delaney A");
  const TwoGroups groups = add_two_groups(*command);
  const auto confidence = add_level(*command, "--confidence", 0.95, "confidence of the intervals");
  set_body(*command, selected, [=](OutputFormat format) -> Result<int> {
    ASSAY_TRY(const Moments a, groups.a->moments());
    ASSAY_TRY(const Moments b, groups.b->moments());
    const auto d = stats::cohen_d(a, b);
    if (!d) return no_test();
    if (!std::isfinite(*d)) return overflowing();
    const auto interval = stats::cohen_d_interval(*d, a.n, b.n, *confidence);
    const auto j =
        stats::hedges_correction(static_cast<double>(a.n) + static_cast<double>(b.n) - 2);
    std::optional<stats::Interval> of_g;
    if (interval && j) of_g = stats::Interval{interval->low * *j, interval->high * *j};
    FigureRow row;
    row.add("d", *d).add("d_", interval).add("g", stats::hedges_g(a, b)).add("g_", of_g);
    if (groups.a->has_values() && groups.b->has_values()) {
      ASSAY_TRY(const std::vector<double> of_a, groups.a->sample());
      ASSAY_TRY(const std::vector<double> of_b, groups.b->sample());
      const auto superiority = stats::vargha_delaney(of_a, of_b, *confidence);
      row.add("A", superiority->a).add("A_", superiority->interval);
    } else {
      row.add("A_if_normal", stats::normal_superiority(a, b));
    }
    Facts facts(
        "Cohen's d (pooled sd), Hedges' g, Vargha and Delaney's A: chance that a is larger");
    facts.confidence(*confidence).sign("a - b");
    return row.print(format, groups.described(facts, a, b));
  });
}

struct TostInput {
  TwoGroups groups{std::make_shared<GroupInput>(), std::make_shared<GroupInput>()};
  std::optional<double> difference, se, df, low, high, margin, ratio_margin;
  std::shared_ptr<double> confidence;

  bool has_groups() const {
    return !groups.a->figures.empty() || groups.a->has_values() || !groups.b->figures.empty() ||
           groups.b->has_values();
  }
};

// The margins of the test, from the one option that is given for them; options that contradict one
// another are refused, never half used.
Result<stats::Interval> tost_margins(const TostInput& in) {
  const bool bounds = in.low || in.high;
  const int kinds = int{in.margin.has_value()} + int{in.ratio_margin.has_value()} + int{bounds};
  if (kinds != 1 || (bounds && !(in.low && in.high))) {
    return bad_input(
        "tost: expected one of --margin, --ratio-margin, and --low with --high, found {}",
        kinds == 0  ? "none"
        : kinds > 1 ? "several"
        : in.low    ? "--low alone"
                    : "--high alone");
  }
  if (in.margin) return stats::Interval{-*in.margin, *in.margin};
  if (in.ratio_margin) return stats::Interval{1 / (1 + *in.ratio_margin), 1 + *in.ratio_margin};
  if (!(*in.low < *in.high)) {
    return bad_input("tost: expected --low below --high, found {} and {}", *in.low, *in.high);
  }
  return stats::Interval{*in.low, *in.high};
}

// Groups, or an estimate with its error: one of them, whole.
Result<bool> tost_is_of_groups(const TostInput& in) {
  const int given =
      int{in.difference.has_value()} + int{in.se.has_value()} + int{in.df.has_value()};
  if (in.has_groups() == (given > 0)) {
    return bad_input(
        "tost: expected either groups a and b, or --difference, --se and --df, found {}",
        given > 0 ? "both" : "neither");
  }
  if (given > 0 && given < 3) {
    return bad_input("tost: expected --difference, --se and --df together, found {} of them",
                     given);
  }
  if (given > 0 && in.ratio_margin) {
    return bad_input("tost: expected groups a and b with --ratio-margin, found a difference");
  }
  for (const auto& group : {in.groups.a, in.groups.b}) {
    if (in.has_groups() && group->figures.empty() == group->values.empty()) {
      return bad_input("tost: expected one of {} and {}-values, found {}", group->option,
                       group->option, group->has_values() ? "both" : "neither");
    }
  }
  return in.has_groups();
}

Result<int> print_tost(const stats::Equivalence& found, const stats::Interval& margins,
                       double alpha, Facts& facts, OutputFormat format) {
  const bool equivalent = found.holds(alpha);
  const stats::TestResult& larger = found.larger();
  FigureRow row;
  row.add("estimate", found.estimate).add("low", margins.low).add("high", margins.high);
  row.add("t", larger.statistic).add("df", larger.df).add_p(larger);
  row.add_p(found.above_low, "_above_low").add_p(found.below_high, "_below_high");
  row.add("interval_", found.interval);
  row.add_text("verdict", equivalent ? "equivalent" : "not shown to be equivalent");
  facts.sides("two one-sided tests; p is the larger")
      .confidence(1 - alpha)
      .set("interval_confidence", 1 - 2 * alpha)
      .set("margins", {{"low", margins.low}, {"high", margins.high}});
  return row.print(format, facts);
}

Result<int> run_tost(const TostInput& in, OutputFormat format) {
  ASSAY_TRY(const stats::Interval margins, tost_margins(in));
  ASSAY_TRY(const bool of_groups, tost_is_of_groups(in));
  const double alpha = 1 - *in.confidence;
  if (!(alpha < 0.5)) {
    return bad_input("--confidence: expected more than 0.5 for two one-sided tests, found {}",
                     *in.confidence);
  }
  if (!of_groups) {
    Facts facts("two one-sided t tests of a difference");
    facts.input("difference", *in.difference).input("se", *in.se).input("df", *in.df);
    const auto found =
        stats::equivalence(*in.difference, {*in.se, *in.df}, margins.low, margins.high, alpha);
    if (!found) return overflowing();
    return print_tost(*found, margins, alpha, facts.sign("as --difference"), format);
  }
  ASSAY_TRY(const Moments a, in.groups.a->moments());
  ASSAY_TRY(const Moments b, in.groups.b->moments());
  const auto error = stats::welch_standard_error(a, b);
  if (!error) return no_test();
  Facts facts(in.ratio_margin ? "two one-sided Welch tests of a ratio of means"
                              : "two one-sided Welch tests of a difference of means");
  in.groups.described(facts.sign(in.ratio_margin ? "a / b" : "a - b"), a, b);
  if (in.ratio_margin && !(a.mean > 0 && b.mean > 0)) {
    return bad_input("--ratio-margin: expected means above 0, found {} and {}", a.mean, b.mean);
  }
  const auto found =
      in.ratio_margin
          ? stats::equivalence_of_ratio(a, b, margins.low, margins.high, alpha)
          : stats::equivalence(a.mean - b.mean, *error, margins.low, margins.high, alpha);
  if (!found) return overflowing();
  return print_tost(*found, margins, alpha, facts, format);
}

void add_tost(CLI::App& parent, Selected& selected) {
  CLI::App* command = parent.add_subcommand(
      "tost", "equivalence by two one-sided tests: of a difference, or of a ratio of means");
  const auto in = std::make_shared<TostInput>();
  in->groups.a->option = "--a";
  in->groups.b->option = "--b";
  for (const auto& group : {in->groups.a, in->groups.b}) {
    command->add_option(group->option, group->figures, "mean, sd and n of a group")
        ->type_name("MEAN,SD,N");
    command->add_option(group->option + "-values", group->values, "values of that group")
        ->type_name("X,Y,...|FILE");
  }
  command->add_option("--difference", in->difference, "estimated difference, instead of groups")
      ->check(check_number);
  command->add_option("--se", in->se, "standard error of the difference")
      ->check(check_number_above_zero);
  command->add_option("--df", in->df, "degrees of freedom of the standard error")
      ->check(check_number_above_zero);
  command
      ->add_option("--margin", in->margin,
                   "differences from -margin to +margin count as equivalent")
      ->check(check_number_above_zero);
  command->add_option("--low", in->low, "smallest difference that counts as equivalent")
      ->check(check_number);
  command->add_option("--high", in->high, "largest difference that counts as equivalent")
      ->check(check_number);
  command
      ->add_option("--ratio-margin", in->ratio_margin,
                   "ratios of means from 1/(1+m) to 1+m count as equivalent")
      ->check(check_number_above_zero);
  in->confidence =
      add_level(*command, "--confidence", 0.95,
                "confidence of each test; that of the interval is 1 - 2 (1 - confidence)");
  set_body(*command, selected, [=](OutputFormat format) { return run_tost(*in, format); });
}

void add_mann_whitney(CLI::App& parent, Selected& selected) {
  CLI::App* command =
      parent.add_subcommand("mannwhitney", "Mann-Whitney U of two samples, and Vargha-Delaney A");
  const auto a = add_sample(*command, "a");
  const auto b = add_sample(*command, "b");
  const auto confidence = add_level(*command, "--confidence", 0.95, "confidence of A's interval");
  set_body(*command, selected, [=](OutputFormat format) -> Result<int> {
    ASSAY_TRY(const std::vector<double> of_a, a->sample());
    ASSAY_TRY(const std::vector<double> of_b, b->sample());
    const auto test = stats::mann_whitney(of_a, of_b);
    const auto superiority = stats::vargha_delaney(of_a, of_b, *confidence);
    FigureRow row;
    row.add("U", test->u, 8)
        .add("A", test->a)
        .add("A_", superiority->interval)
        .add_p(test->p, test->log_p)
        .add_text("method", test->exact ? "exact" : "normal");
    Facts facts(test->exact ? "Mann-Whitney U, exact"
                            : "Mann-Whitney U, normal approximation with ties and continuity");
    facts.sides("two-sided").confidence(*confidence).sign("A above 0.5: a is larger");
    facts.input("a", sample_json(of_a, a->values)).input("b", sample_json(of_b, b->values));
    return row.print(format, facts);
  });
}

Result<int> print_f(const std::optional<stats::FTest>& test, const Facts& facts,
                    OutputFormat format) {
  if (!test) {
    return bad_input(
        "groups: expected at least 2, more values than groups, and values that vary and whose "
        "squares a double holds");
  }
  FigureRow row;
  row.add("F", test->f).add("df1", test->df1).add("df2", test->df2).add_p(test->p, test->log_p);
  const double explained = test->f * test->df1;
  row.add("eta_squared", explained / (explained + test->df2));
  return row.print(format, facts);
}

// Groups of levene and oneway, given as --a and --a-values are elsewhere: --group has a group's
// figures, --group-values its values.
struct Groups {
  std::vector<std::string> figures;
  std::vector<std::string> values;
};

std::shared_ptr<Groups> add_groups(CLI::App& command) {
  const auto groups = std::make_shared<Groups>();
  command
      .add_option("--group", groups->figures,
                  "mean, sd and n of a group; repeat the option for each group")
      ->type_name("MEAN,SD,N");
  command
      .add_option("--group-values", groups->values,
                  "values of a group; repeat the option for each group")
      ->type_name("X,Y,...|FILE");
  return groups;
}

void add_levene(CLI::App& parent, Selected& selected) {
  CLI::App* command = parent.add_subcommand("levene", "equality of variances of groups of values");
  const auto groups = add_groups(*command);
  const auto mean = std::make_shared<bool>(false);
  command->add_flag("--mean", *mean,
                    "use deviations from means (Levene) instead of medians (Brown-Forsythe)");
  set_body(*command, selected, [=](OutputFormat format) -> Result<int> {
    if (!groups->figures.empty()) {
      return bad_input(
          "levene: expected --group-values, found --group: figures don't give the distances of "
          "values from their middle");
    }
    std::vector<std::vector<double>> samples;
    Json inputs = Json::array();
    for (const std::string& group : groups->values) {
      ASSAY_TRY(std::vector<double> values, parse_values("--group-values", group));
      inputs.push_back(sample_json(values, group));
      samples.push_back(std::move(values));
    }
    Facts facts(*mean ? "Levene's test, deviations from means"
                      : "Brown and Forsythe's test, deviations from medians");
    facts.sides("upper tail of F").input("groups", inputs);
    return print_f(stats::levene(samples, *mean ? stats::Centre::kMean : stats::Centre::kMedian),
                   facts, format);
  });
}

void add_oneway(CLI::App& parent, Selected& selected) {
  CLI::App* command =
      parent.add_subcommand("oneway", "one-way analysis of variance of groups' figures or values");
  const auto groups = add_groups(*command);
  set_body(*command, selected, [=](OutputFormat format) -> Result<int> {
    std::vector<Moments> figures;
    Json inputs = Json::array();
    for (const std::string& group : groups->figures) {
      const GroupInput input{"--group", group, ""};
      ASSAY_TRY(const Moments of_group, input.moments());
      figures.push_back(of_group);
      inputs.push_back(group_json(of_group));
    }
    for (const std::string& values : groups->values) {
      const GroupInput input{"--group", "", values};
      ASSAY_TRY(const Moments of_group, input.moments());
      figures.push_back(of_group);
      inputs.push_back(group_json(of_group, values));
    }
    Facts facts("one-way analysis of variance");
    facts.sides("upper tail of F").input("groups", inputs);
    return print_f(stats::one_way_anova(figures), facts, format);
  });
}

}  // namespace

void add_stats_groups(CLI::App& parent, Selected& selected) {
  add_t_test(parent, "welch", "Welch's t test of two groups", stats::welch_standard_error,
             selected);
  add_t_test(parent, "student", "Student's t test of two groups", stats::pooled_standard_error,
             selected);
  add_effect(parent, selected);
  add_tost(parent, selected);
  add_mann_whitney(parent, selected);
  add_levene(parent, selected);
  add_oneway(parent, selected);
}

}  // namespace assay::cli
