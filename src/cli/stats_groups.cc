// assay stats: two or more groups, from figures or values.
#include <cmath>

#include "base/text.h"
#include "cli/stats_input.h"
#include "stats/effect.h"

namespace assay::cli {
namespace {

using stats::Moments;

struct TwoGroups {
  std::shared_ptr<GroupInput> a;
  std::shared_ptr<GroupInput> b;
};

TwoGroups add_two_groups(CLI::App& command) {
  auto a = add_group(command, "a");
  return {std::move(a), add_group(command, "b")};
}

std::unexpected<Error> no_test() {
  return bad_input("a and b: expected at least 2 values in each and a deviation above 0 in one");
}

void add_t_test(CLI::App& parent, const std::string& name, const std::string& summary,
                std::optional<stats::StandardError> (*error_of)(const Moments&, const Moments&),
                Selected& selected) {
  CLI::App* command = parent.add_subcommand(name, summary);
  const TwoGroups groups = add_two_groups(*command);
  const auto confidence = add_level(*command, "--confidence", 0.95, "of the interval");
  set_body(*command, selected, [=](OutputFormat format) -> Result<int> {
    ASSAY_TRY(const Moments a, groups.a->moments());
    ASSAY_TRY(const Moments b, groups.b->moments());
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
    return row.print(format);
  });
}

void add_effect(CLI::App& parent, Selected& selected) {
  CLI::App* command = parent.add_subcommand(
      "effect", "Cohen's d and Hedges' g with intervals by the noncentral t; Vargha-Delaney A");
  const TwoGroups groups = add_two_groups(*command);
  const auto confidence = add_level(*command, "--confidence", 0.95, "of the intervals");
  set_body(*command, selected, [=](OutputFormat format) -> Result<int> {
    ASSAY_TRY(const Moments a, groups.a->moments());
    ASSAY_TRY(const Moments b, groups.b->moments());
    const auto d = stats::cohen_d(a, b);
    if (!d) return no_test();
    const auto interval = stats::cohen_d_interval(*d, a.n, b.n, *confidence);
    const auto j = stats::hedges_correction(static_cast<double>(a.n + b.n - 2));
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
    return row.print(format);
  });
}

struct TostInput {
  std::shared_ptr<GroupInput> a = std::make_shared<GroupInput>();
  std::shared_ptr<GroupInput> b = std::make_shared<GroupInput>();
  std::optional<double> difference, se, df, low, high, margin, ratio_margin;
};

// One line: the two one-sided tests' larger p.
Result<int> run_tost(const TostInput& in, OutputFormat format) {
  const auto given = [](const auto&... x) { return (x.has_value() && ...); };
  std::optional<double> low = in.low;
  std::optional<double> high = in.high;
  if (in.margin) {
    low = -*in.margin;
    high = *in.margin;
  }
  std::optional<stats::TestResult> test;
  if (given(in.difference, in.se, in.df)) {
    if (!given(low, high)) return bad_input("tost: expected --margin, or --low and --high");
    if (!(*in.se > 0) || !(*in.df > 0)) {
      return bad_input("tost: expected --se and --df above 0, found {} and {}", *in.se, *in.df);
    }
    if (!(*low < *high)) return bad_input("tost: expected --low below --high");
    test = stats::tost(*in.difference, {*in.se, *in.df}, *low, *high);
  } else {
    ASSAY_TRY(const Moments a, in.a->moments());
    ASSAY_TRY(const Moments b, in.b->moments());
    if (in.ratio_margin) {
      low = 1 / (1 + *in.ratio_margin);
      high = 1 + *in.ratio_margin;
      if (!(*in.ratio_margin > 0)) return bad_input("--ratio-margin: expected a number above 0");
      test = stats::tost_ratio(a, b, *low, *high);
    } else {
      if (!given(low, high)) {
        return bad_input("tost: expected --margin, --ratio-margin, or --low and --high");
      }
      if (!(*low < *high)) return bad_input("tost: expected --low below --high");
      test = stats::tost_difference(a, b, *low, *high);
    }
  }
  if (!test) return no_test();
  FigureRow row;
  row.add("low", *low).add("high", *high).add("t", test->statistic).add("df", test->df).add_p(test);
  return row.print(format);
}

void add_tost(CLI::App& parent, Selected& selected) {
  CLI::App* command = parent.add_subcommand(
      "tost", "equivalence by two one-sided tests: of a difference, or of a ratio of means");
  const auto in = std::make_shared<TostInput>();
  in->a->option = "--a";
  in->b->option = "--b";
  for (const auto& [name, group] : {std::pair{"--a", in->a}, {"--b", in->b}}) {
    command->add_option(name, group->figures, "a group's figures")->type_name("MEAN,SD,N");
    command->add_option(std::string(name) + "-values", group->values, "its values");
  }
  command->add_option("--difference", in->difference, "instead of groups: the estimate");
  command->add_option("--se", in->se, "its standard error");
  command->add_option("--df", in->df, "its degrees of freedom");
  command->add_option("--margin", in->margin, "equivalent: a difference within -+ this");
  command->add_option("--low", in->low, "or from this");
  command->add_option("--high", in->high, "to this");
  command->add_option("--ratio-margin", in->ratio_margin, "or a ratio of 1/(1+m) to 1+m");
  set_body(*command, selected, [=](OutputFormat format) { return run_tost(*in, format); });
}

void add_mann_whitney(CLI::App& parent, Selected& selected) {
  CLI::App* command =
      parent.add_subcommand("mannwhitney", "Mann-Whitney U of two samples, and Vargha-Delaney A");
  const auto a = add_sample(*command, "a");
  const auto b = add_sample(*command, "b");
  const auto confidence = add_level(*command, "--confidence", 0.95, "of A's interval");
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
    return row.print(format);
  });
}

Result<int> print_f(const std::optional<stats::FTest>& test, OutputFormat format) {
  if (!test) {
    return bad_input("groups: expected at least 2, more values than groups, and values that vary");
  }
  FigureRow row;
  row.add("F", test->f).add("df1", test->df1).add("df2", test->df2).add_p(test->p, test->log_p);
  const double explained = test->f * test->df1;
  row.add("eta_squared", explained / (explained + test->df2));
  return row.print(format);
}

void add_levene(CLI::App& parent, Selected& selected) {
  CLI::App* command = parent.add_subcommand("levene", "equality of variances of groups of values");
  const auto groups = std::make_shared<std::vector<std::string>>();
  const auto mean = std::make_shared<bool>(false);
  command->add_option("--group", *groups, "values of a group, a list or a file; once a group")
      ->type_name("X,Y,...|FILE")
      ->required();
  command->add_flag("--mean", *mean,
                    "deviations from means (Levene), not medians (Brown-Forsythe)");
  set_body(*command, selected, [=](OutputFormat format) -> Result<int> {
    std::vector<std::vector<double>> samples;
    for (const std::string& group : *groups) {
      ASSAY_TRY(std::vector<double> values, parse_values("--group", group));
      samples.push_back(std::move(values));
    }
    return print_f(stats::levene(samples, *mean ? stats::Centre::kMean : stats::Centre::kMedian),
                   format);
  });
}

void add_oneway(CLI::App& parent, Selected& selected) {
  CLI::App* command =
      parent.add_subcommand("oneway", "one-way analysis of variance from the groups' figures");
  const auto groups = std::make_shared<std::vector<std::string>>();
  command->add_option("--group", *groups, "a group's figures; once a group")
      ->type_name("MEAN,SD,N")
      ->required();
  set_body(*command, selected, [=](OutputFormat format) -> Result<int> {
    std::vector<Moments> figures;
    for (const std::string& group : *groups) {
      ASSAY_TRY(const Moments of_group, parse_moments("--group", group));
      figures.push_back(of_group);
    }
    return print_f(stats::one_way_anova(figures), format);
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
