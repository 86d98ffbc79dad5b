// assay stats: one sample's description, its order, and bootstrap intervals.
#include <algorithm>

#include "base/text/text.h"
#include "cli/stats/stats_input.h"
#include "stats/estimates/few_values.h"
#include "stats/estimates/quantile_ratio.h"
#include "stats/resamples/bootstrap.h"
#include "stats/samples/ecdf.h"
#include "stats/samples/series.h"
#include "stats/samples/trend.h"
#include "stats/sequential/confidence_sequence.h"

namespace assay::cli {
namespace {

void add_describe(CLI::App& parent, Selected& selected) {
  CLI::App* command = parent.add_subcommand(
      "describe", "n, mean, sd, quantiles (type 7), trimmed mean, MAD, Tukey's fences");
  const auto a = add_sample(*command, "a");
  set_body(*command, selected, [=](OutputFormat format) -> Result<int> {
    ASSAY_TRY(const std::vector<double> values, a->sample());
    const std::vector<double> order = stats::sorted(values);
    const auto fences = stats::tukey_fences(order);
    FigureRow row;
    row.add_count("n", static_cast<int64_t>(values.size()))
        .add("mean", stats::mean(values))
        .add("sd", stats::standard_deviation(values))
        .add("min", order.front())
        .add("p25", stats::quantile(order, 0.25))
        .add("median", stats::median(order))
        .add("p75", stats::quantile(order, 0.75))
        .add("p90", stats::percentile(order, 0.9))
        .add("p95", stats::percentile(order, 0.95))
        .add("p99", stats::percentile(order, 0.99))
        .add("max", order.back())
        .add("trimmed_mean", stats::trimmed_mean(order, 0.1))
        .add("mad", stats::median_absolute_deviation(order))
        .add("fence_",
             fences ? std::optional(stats::Interval{fences->low, fences->high}) : std::nullopt);
    Facts facts("description of a sample: quantiles of type 7, sd with n - 1");
    return row.print(format, facts.input("a", sample_json(values, a->values)));
  });
}

void add_ecdf(CLI::App& parent, Selected& selected) {
  CLI::App* command =
      parent.add_subcommand("ecdf", "empirical distribution: share of the values up to each value");
  const auto a = add_sample(*command, "a");
  set_body(*command, selected, [=](OutputFormat format) -> Result<int> {
    ASSAY_TRY(const std::vector<double> values, a->sample());
    Table table;
    for (const auto& step : stats::ecdf_steps(stats::sorted(values))) {
      FigureRow().add("value", step.value, 8).add("share", step.share).append_to(table);
    }
    Facts facts("empirical distribution");
    return print_rows(table, facts.input("a", sample_json(values, "")), format);
  });
}

struct BootstrapInput {
  std::string a;
  std::string b;
  std::optional<double> quantile;
  int64_t resamples = 10000;
  uint64_t seed = 42;
  std::shared_ptr<double> confidence;

  stats::BootstrapOptions options(stats::BootstrapMethod method) const {
    return {resamples, seed, *confidence, method};
  }
  Facts facts(const std::string& method, size_t n_a, size_t n_b) const {
    Facts facts(method);
    facts.confidence(*confidence).set("resamples", resamples).set("seed", seed);
    facts.sign("a / b").input("a", Json{{"n", n_a}, {"values", a}});
    if (n_b > 0) facts.input("b", Json{{"n", n_b}, {"values", b}});
    return facts;
  }
};

Result<int> bootstrap_quantiles(const BootstrapInput& in, std::vector<double> a,
                                std::vector<double> b, OutputFormat format) {
  std::ranges::sort(a);
  std::ranges::sort(b);
  stats::QuantileBootstrap bootstrap(in.options(stats::BootstrapMethod::kPercentile));
  const auto of_a = stats::quantile_interval(a, *in.quantile, *in.confidence);
  FigureRow row;
  row.add("quantile", *in.quantile).add("a", stats::quantile(a, *in.quantile)).add("a_", of_a);
  if (!b.empty()) {
    const auto of_b = stats::quantile_interval(b, *in.quantile, *in.confidence);
    const auto ratio = bootstrap.ratio(a, b, *in.quantile, 3);
    // Resamples hold nothing beyond the largest value, so few values know no tail, by any method.
    const bool is_sure = ratio && of_a && of_b;
    row.add("b", stats::quantile(b, *in.quantile))
        .add("b_", of_b)
        .add("ratio", ratio ? std::optional(ratio->ratio) : std::nullopt)
        .add("ratio_", is_sure ? std::optional(ratio->interval) : std::nullopt);
  }
  const char* method =
      "a quantile by order statistics, absent where the values are too few for it; the ratio of "
      "two "
      "by percentile bootstrap, absent where one of theirs is";
  return row.print(format, in.facts(method, a.size(), b.size()));
}

Result<int> run_bootstrap(const BootstrapInput& in, OutputFormat format) {
  ASSAY_TRY(const std::vector<double> a, parse_values("--a", in.a));
  std::vector<double> b;
  if (!in.b.empty()) {
    ASSAY_TRY(b, parse_values("--b", in.b));
  }
  constexpr double kMostDraws = 1e11;  // minutes
  const double draws = static_cast<double>(a.size() + b.size()) * static_cast<double>(in.resamples);
  if (draws > kMostDraws) {
    return bad_input("--resamples: expected at most 1e11 draws of all values, found {:.1e}", draws);
  }
  if (in.quantile) return bootstrap_quantiles(in, a, b, format);
  const auto bca = in.options(stats::BootstrapMethod::kBca);
  const auto percentile = in.options(stats::BootstrapMethod::kPercentile);
  ThreadPool pool(available_cpus());
  const stats::BootstrapSample samples[] = {{a, 1}, {b, 2}};
  const auto resampled = stats::resample_means(samples, bca, &pool);
  FigureRow row;
  const auto add_mean = [&](const std::string& name, const std::vector<double>& values,
                            const std::optional<stats::ResampledMean>& of) {
    using Bounds = std::optional<stats::Interval>;
    row.add("mean_" + name, stats::mean(values))
        .add(name + "_", of ? stats::calibrated_mean_interval(*of, bca) : Bounds())
        .add(name + "_bca_", of ? stats::mean_interval(*of, bca) : Bounds())
        .add(name + "_percentile_", of ? stats::mean_interval(*of, percentile) : Bounds());
  };
  add_mean("a", a, resampled[0]);
  if (!b.empty()) {
    add_mean("b", b, resampled[1]);
    std::optional<stats::Interval> ratio;
    if (resampled[0] && resampled[1]) {
      const stats::RatioPair pair[] = {{&*resampled[0], &*resampled[1]}};
      ratio = stats::calibrated_ratio_interval(pair, percentile);
    }
    const auto above = stats::mean(a);
    const auto below = stats::mean(b);
    const bool has_ratio = above && below && *below != 0;
    row.add("ratio", has_ratio ? std::optional(*above / *below) : std::nullopt)
        .add("ratio_", ratio);
  }
  const char* method =
      "bootstrap: of means BCa and of their ratio percentile, calibrated for few values; _bca_ and "
      "_percentile_ are those of textbooks, too narrow for few values";
  return row.print(format, in.facts(method, a.size(), b.size()));
}

void add_bootstrap(CLI::App& parent, Selected& selected) {
  CLI::App* command = parent.add_subcommand(
      "bootstrap",
      "intervals of means (BCa, percentile), quantiles (order statistics) and their ratio");
  const auto in = std::make_shared<BootstrapInput>();
  command->add_option("--a,--a-values", in->a, "values, a list or a file")->required();
  command->add_option("--b,--b-values", in->b,
                      "values of a second sample; adds the ratio of the two");
  command->add_option("--quantile", in->quantile, "use this quantile instead of the mean")
      ->check(check_share);
  command->add_option("--resamples", in->resamples, "bootstrap resamples (default 10000)")
      ->check(check_whole(100, 10'000'000));
  command->add_option("--seed", in->seed, "seed of the bootstrap (default 42)")
      ->check(check_whole(0, UINT64_MAX));
  in->confidence = add_level(*command, "--confidence", 0.95, "confidence of the intervals");
  set_body(*command, selected, [=](OutputFormat format) { return run_bootstrap(*in, format); });
}

void add_autocorrelation(CLI::App& parent, Selected& selected) {
  CLI::App* command = parent.add_subcommand(
      "autocorrelation", "of values in their order: lag 1, Ljung-Box, effective sample size");
  const auto a = add_sample(*command, "a");
  const auto lags = std::make_shared<std::optional<int64_t>>();
  command
      ->add_option("--lags", *lags,
                   "lags of the Ljung-Box test (default: a fifth of n, at most 10)")
      ->check(check_whole(1, 1'000'000'000));
  set_body(*command, selected, [=](OutputFormat format) -> Result<int> {
    ASSAY_TRY(const std::vector<double> values, a->sample());
    const auto n = static_cast<int64_t>(values.size());
    const int64_t count = lags->value_or(std::clamp<int64_t>(n / 5, 1, 10));
    const auto r = stats::autocorrelation(values, 1);
    const auto size = stats::effective_sample_size(values);
    if (!r || !size || count >= n) {
      return bad_input(
          "--a: expected at least 4 values that vary, more than --lags, whose sum a double holds, "
          "found {}",
          n);
    }
    const auto box = stats::ljung_box(values, static_cast<size_t>(count));
    if (!box) {
      return bad_input("--lags: expected a Q within reach of chi-square, found {} lags of {}",
                       count, counted(n, "value"));
    }
    FigureRow row;
    row.add_count("n", n).add("r1", (*r)[1]).add("effective_n", size->size).add("tau", size->tau);
    row.add_count("lags", count).add("Q", box->q).add_p(box->p, box->log_p);
    Facts facts("autocorrelation, Ljung and Box's Q, Geyer's effective size");
    facts.sides("upper tail of chi-square");
    return row.print(format, facts.input("a", sample_json(values, a->values)));
  });
}

void add_trend(CLI::App& parent, Selected& selected) {
  CLI::App* command =
      parent.add_subcommand("trend", "drift along the order: Mann-Kendall and Theil-Sen");
  const auto a = add_sample(*command, "a");
  const auto confidence =
      add_level(*command, "--confidence", 0.95, "confidence of the slope's interval");
  set_body(*command, selected, [=](OutputFormat format) -> Result<int> {
    ASSAY_TRY(const std::vector<double> values, a->sample());
    const auto test = stats::mann_kendall(values);
    if (!test)
      return bad_input("--a: expected at least 4 values that vary, found {}", values.size());
    std::vector<double> order;
    for (size_t i = 0; i < values.size(); ++i) order.push_back(static_cast<double>(i));
    const auto line = stats::theil_sen(order, values, *confidence);
    FigureRow row;
    row.add("S", test->s, 8).add("z", test->z).add_p(test->p, test->log_p);
    row.add("slope", line ? std::optional(line->slope) : stats::theil_sen_slope(order, values))
        .add("slope_", line ? line->interval : std::nullopt);
    Facts facts("Mann and Kendall's test, Theil and Sen's slope a place");
    facts.sides("two-sided").confidence(*confidence).sign("above 0: values rise");
    return row.print(format, facts.input("a", sample_json(values, a->values)));
  });
}

void add_anytime(CLI::App& parent, Selected& selected) {
  CLI::App* command = parent.add_subcommand(
      "anytime", "interval of the mean that holds however often values are looked at");
  const auto a = add_sample(*command, "a");
  const auto confidence = add_level(*command, "--confidence", 0.95, "of all intervals together");
  set_body(*command, selected, [=](OutputFormat format) -> Result<int> {
    ASSAY_TRY(const std::vector<double> values, a->sample());
    FigureRow row;
    row.add_count("n", static_cast<int64_t>(values.size()))
        .add("mean", stats::mean(values))
        .add("", stats::anytime_interval(values, 1 - *confidence))
        .add_count("least_n", stats::least_looks(1 - *confidence));
    Facts facts(
        "confidence sequence of a mean: the t test's Bayes factor, effects of N(0, 2^2), "
        "wider for dependence and skewness");
    facts.confidence(*confidence);
    return row.print(format, facts.input("a", sample_json(values, a->values)));
  });
}

void add_change_points(CLI::App& parent, Selected& selected) {
  CLI::App* command = parent.add_subcommand(
      "changepoints",
      "rows at which the level of a series changes: Pettitt, by binary segmentation");
  const auto a = add_sample(*command, "a");
  const auto alpha = add_level(*command, "--alpha", 0.01, "level of each split");
  set_body(*command, selected, [=](OutputFormat format) -> Result<int> {
    ASSAY_TRY(const std::vector<double> values, a->sample());
    Table table;
    table.columns = {{"index"}, {"K"}, {"p"}, {"ln_p"}};
    for (const auto& change : stats::change_points(values, *alpha)) {
      FigureRow row;
      row.add_count("index", static_cast<int64_t>(change.index)).add("K", change.k, 8);
      row.add_p(change.p, change.log_p).append_to(table);
    }
    Facts facts("Pettitt's test by binary segmentation");
    facts.sides("two-sided").set("alpha", *alpha);
    return print_rows(table, facts.input("a", sample_json(values, a->values)), format);
  });
}

}  // namespace

void add_stats_samples(CLI::App& parent, Selected& selected) {
  add_describe(parent, selected);
  add_ecdf(parent, selected);
  add_bootstrap(parent, selected);
  add_autocorrelation(parent, selected);
  add_trend(parent, selected);
  add_anytime(parent, selected);
  add_change_points(parent, selected);
}

}  // namespace assay::cli
