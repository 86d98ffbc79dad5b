// assay stats: two or more groups, from figures or values.
#include <cmath>

#include "cli/stats/stats_table.h"
#include "stats/hypotheses/effect.h"
#include "stats/hypotheses/equivalence.h"

namespace assay::cli {
namespace {

using Kind = Parameter::Kind;
using stats::Moments;

std::unexpected<Error> no_test() {
  return bad_input("a and b: expected at least 2 values in each and a deviation above 0 in one");
}

std::unexpected<Error> overflowing() {
  return bad_input("a and b: expected means whose difference a double holds, found an overflow");
}

using ErrorOfDifference = std::optional<stats::StandardError>(const Moments&, const Moments&);

Result<StatsAnswer> t_test(Given& in, const char* method, ErrorOfDifference* error_of) {
  ASSAY_TRY(const Moments a, in.group("a"));
  ASSAY_TRY(const Moments b, in.group("b"));
  if (!std::isfinite(a.mean - b.mean)) return overflowing();
  const auto error = error_of(a, b);
  if (!error) return no_test();
  const double difference = a.mean - b.mean;
  const auto test = stats::t_test(difference, *error);
  FigureRow row;
  row.add("difference", difference)
      .add("se", error->value)
      .add("", stats::t_interval(difference, *error, in.number("confidence")))
      .add("t", test ? std::optional(test->statistic) : std::nullopt)
      .add("df", error->df)
      .add_p(test);
  return StatsAnswer(row, in.facts(method).sides("two-sided").sign("a - b"));
}

Result<StatsAnswer> welch(Given& in) {
  return t_test(in, "Welch's t test", stats::welch_standard_error);
}

Result<StatsAnswer> student(Given& in) {
  return t_test(in, "Student's t test", stats::pooled_standard_error);
}

Result<StatsAnswer> effect(Given& in) {
  ASSAY_TRY(const Moments a, in.group("a"));
  ASSAY_TRY(const Moments b, in.group("b"));
  const auto d = stats::cohen_d(a, b);
  if (!d) return no_test();
  if (!std::isfinite(*d)) return overflowing();
  const double confidence = in.number("confidence");
  const auto interval = stats::cohen_d_interval(*d, a.n, b.n, confidence);
  const auto j = stats::hedges_correction(static_cast<double>(a.n) + static_cast<double>(b.n) - 2);
  std::optional<stats::Interval> of_g;
  if (interval && j) of_g = stats::Interval{interval->low * *j, interval->high * *j};
  FigureRow row;
  row.add("d", *d).add("d_", interval).add("g", stats::hedges_g(a, b)).add("g_", of_g);
  if (in.has("a-values") && in.has("b-values")) {
    ASSAY_TRY(const std::vector<double> of_a, parse_values("--a-values", in.text("a-values")));
    ASSAY_TRY(const std::vector<double> of_b, parse_values("--b-values", in.text("b-values")));
    const auto superiority = stats::vargha_delaney(of_a, of_b, confidence);
    row.add("A", superiority->a).add("A_", superiority->interval);
  } else {
    row.add("A_if_normal", stats::normal_superiority(a, b));
  }
  const char* method =
      "Cohen's d (pooled sd), Hedges' g, Vargha and Delaney's A: chance that a is larger";
  return StatsAnswer(row, in.facts(method).sign("a - b"));
}

// The margins of the test, from the one option that is given for them; options that contradict one
// another are refused, never half used.
Result<stats::Interval> tost_margins(const Given& in) {
  const bool bounds = in.has("low") || in.has("high");
  const int kinds = int{in.has("margin")} + int{in.has("ratio-margin")} + int{bounds};
  if (kinds != 1 || (bounds && !(in.has("low") && in.has("high")))) {
    return bad_input(
        "tost: expected one of --margin, --ratio-margin, and --low with --high, found {}",
        kinds == 0      ? "none"
        : kinds > 1     ? "several"
        : in.has("low") ? "--low alone"
                        : "--high alone");
  }
  if (const auto margin = in.number_if_given("margin")) return stats::Interval{-*margin, *margin};
  if (const auto share = in.number_if_given("ratio-margin")) {
    return stats::Interval{1 / (1 + *share), 1 + *share};
  }
  const stats::Interval margins{in.number("low"), in.number("high")};
  if (margins.low < margins.high) return margins;
  return bad_input("tost: expected --low below --high, found {} and {}", margins.low, margins.high);
}

// Groups, or an estimate with its error: one of them, whole.
Result<bool> tost_is_of_groups(const Given& in) {
  const int given = int{in.has("difference")} + int{in.has("se")} + int{in.has("df")};
  const bool has_groups = in.has_group("a") || in.has_group("b");
  if (has_groups == (given > 0)) {
    return bad_input(
        "tost: expected either groups a and b, or --difference, --se and --df, found {}",
        given > 0 ? "both" : "neither");
  }
  if (given > 0 && given < 3) {
    return bad_input("tost: expected --difference, --se and --df together, found {} of them",
                     given);
  }
  if (given > 0 && in.has("ratio-margin")) {
    return bad_input("tost: expected groups a and b with --ratio-margin, found a difference");
  }
  for (const std::string name : {"a", "b"}) {
    if (has_groups && in.has(name) == in.has(name + "-values")) {
      return bad_input("tost: expected one of --{} and --{}-values, found {}", name, name,
                       in.has(name) ? "both" : "neither");
    }
  }
  return has_groups;
}

StatsAnswer tost_answer(const stats::Equivalence& found, const stats::Interval& margins,
                        double alpha, Facts facts) {
  const stats::TestResult& larger = found.larger();
  FigureRow row;
  row.add("estimate", found.estimate).add("low", margins.low).add("high", margins.high);
  row.add("t", larger.statistic).add("df", larger.df).add_p(larger);
  row.add_p(found.above_low, "_above_low").add_p(found.below_high, "_below_high");
  row.add("interval_", found.interval);
  row.add_text("verdict", found.holds(alpha) ? "equivalent" : "not shown to be equivalent");
  facts.sides("two one-sided tests; p is the larger")
      .set("interval_confidence", 1 - 2 * alpha)
      .set("margins", {{"low", margins.low}, {"high", margins.high}});
  return {row, std::move(facts)};
}

Result<StatsAnswer> tost_of_difference(Given& in, const stats::Interval& margins, double alpha) {
  const double difference = in.number("difference");
  const stats::StandardError error{in.number("se"), in.number("df")};
  const auto found = stats::equivalence(difference, error, margins.low, margins.high, alpha);
  if (!found) return overflowing();
  Facts facts = in.facts("two one-sided t tests of a difference");
  facts.input("difference", difference).input("se", error.value).input("df", error.df);
  return tost_answer(*found, margins, alpha, facts.sign("as --difference"));
}

Result<StatsAnswer> tost(Given& in) {
  ASSAY_TRY(const stats::Interval margins, tost_margins(in));
  ASSAY_TRY(const bool is_of_groups, tost_is_of_groups(in));
  const double alpha = 1 - in.number("confidence");
  if (!(alpha < 0.5)) {
    return bad_input("--confidence: expected more than 0.5 for two one-sided tests, found {}",
                     in.number("confidence"));
  }
  if (!is_of_groups) return tost_of_difference(in, margins, alpha);
  ASSAY_TRY(const Moments a, in.group("a"));
  ASSAY_TRY(const Moments b, in.group("b"));
  const auto error = stats::welch_standard_error(a, b);
  if (!error) return no_test();
  const bool is_ratio = in.has("ratio-margin");
  if (is_ratio && !(a.mean > 0 && b.mean > 0)) {
    return bad_input("--ratio-margin: expected means above 0, found {} and {}", a.mean, b.mean);
  }
  const auto found =
      is_ratio ? stats::equivalence_of_ratio(a, b, margins.low, margins.high, alpha)
               : stats::equivalence(a.mean - b.mean, *error, margins.low, margins.high, alpha);
  if (!found) return overflowing();
  Facts facts = in.facts(is_ratio ? "two one-sided Welch tests of a ratio of means"
                                  : "two one-sided Welch tests of a difference of means");
  return tost_answer(*found, margins, alpha, facts.sign(is_ratio ? "a / b" : "a - b"));
}

Result<StatsAnswer> mann_whitney(Given& in) {
  ASSAY_TRY(const std::vector<double> a, in.sample("a"));
  ASSAY_TRY(const std::vector<double> b, in.sample("b"));
  const auto test = stats::mann_whitney(a, b);
  const auto superiority = stats::vargha_delaney(a, b, in.number("confidence"));
  FigureRow row;
  row.add("U", test->u, 8)
      .add("A", test->a)
      .add("A_", superiority->interval)
      .add_p(test->p, test->log_p)
      .add_text("method", test->exact ? "exact" : "normal");
  Facts facts =
      in.facts(test->exact ? "Mann-Whitney U, exact"
                           : "Mann-Whitney U, normal approximation with ties and continuity");
  return StatsAnswer(row, facts.sides("two-sided").sign("A above 0.5: a is larger"));
}

Result<StatsAnswer> f_answer(const std::optional<stats::FTest>& test, Facts facts) {
  if (!test) {
    return bad_input(
        "groups: expected at least 2, more values than groups, and values that vary and whose "
        "squares a double holds");
  }
  FigureRow row;
  row.add("F", test->f).add("df1", test->df1).add("df2", test->df2).add_p(test->p, test->log_p);
  const double explained = test->f * test->df1;
  row.add("eta_squared", explained / (explained + test->df2));
  return StatsAnswer(row, facts.sides("upper tail of F"));
}

Result<StatsAnswer> levene(Given& in) {
  if (!in.each("group").empty()) {
    return bad_input(
        "levene: expected --group-values, found --group: figures don't give the distances of "
        "values from their middle");
  }
  std::vector<std::vector<double>> samples;
  Json inputs = Json::array();
  for (const std::string& values : in.each("group-values")) {
    ASSAY_TRY(std::vector<double> sample, parse_values("--group-values", values));
    inputs.push_back(sample_json(sample, values));
    samples.push_back(std::move(sample));
  }
  const bool by_means = in.flag("mean");
  Facts facts = in.facts(by_means ? "Levene's test, deviations from means"
                                  : "Brown and Forsythe's test, deviations from medians");
  facts.input("groups", inputs);
  return f_answer(stats::levene(samples, by_means ? stats::Centre::kMean : stats::Centre::kMedian),
                  facts);
}

Result<StatsAnswer> oneway(Given& in) {
  std::vector<Moments> groups;
  Json inputs = Json::array();
  for (const std::string& figures : in.each("group")) {
    ASSAY_TRY(const Moments group, parse_moments("--group", figures));
    groups.push_back(group);
    inputs.push_back(group_json(group));
  }
  for (const std::string& values : in.each("group-values")) {
    ASSAY_TRY(const Moments group, moments_of_values("--group", values));
    groups.push_back(group);
    inputs.push_back(group_json(group, values));
  }
  Facts facts = in.facts("one-way analysis of variance");
  return f_answer(stats::one_way_anova(groups), facts.input("groups", inputs));
}

}  // namespace

std::vector<StatsSubcommand> stats_of_groups() {
  const Parameter a = group("a");
  const Parameter b = group("b");
  return {{"welch",
           "Welch's t test of two groups",
           {a, b, confidence("confidence of the interval")},
           welch},
          {"student",
           "Student's t test of two groups",
           {a, b, confidence("confidence of the interval")},
           student},
          {"effect",
           "Cohen's d and Hedges' g with intervals by the noncentral t; Vargha-Delaney A",
           {a, b, confidence("confidence of the intervals")},
           effect},
          {"tost",
           "equivalence by two one-sided tests: of a difference, or of a ratio of means",
           {{Kind::kEither, "a"},
            {Kind::kEither, "b"},
            {Kind::kNumber, "difference", "estimated difference, instead of groups"},
            {Kind::kPositive, "se", "standard error of the difference"},
            {Kind::kPositive, "df", "degrees of freedom of the standard error"},
            {Kind::kPositive, "margin", "differences from -margin to +margin count as equivalent"},
            {Kind::kNumber, "low", "smallest difference that counts as equivalent"},
            {Kind::kNumber, "high", "largest difference that counts as equivalent"},
            {Kind::kPositive, "ratio-margin",
             "ratios of means from 1/(1+m) to 1+m count as equivalent"},
            confidence("confidence of each test; that of the interval is 1 - 2 (1 - confidence)")},
           tost},
          {"mannwhitney",
           "Mann-Whitney U of two samples, and Vargha-Delaney A",
           {sample("a"), sample("b"), confidence("confidence of A's interval")},
           mann_whitney},
          {"levene",
           "equality of variances of groups of values",
           {{Kind::kGroups, "group"},
            {Kind::kFlag, "mean",
             "use deviations from means (Levene) instead of medians (Brown-Forsythe)"}},
           levene},
          {"oneway",
           "one-way analysis of variance of groups' figures or values",
           {{Kind::kGroups, "group"}},
           oneway}};
}

}  // namespace assay::cli
