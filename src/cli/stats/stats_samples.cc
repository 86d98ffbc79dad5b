// assay stats: one sample's description, its order, and bootstrap intervals.
#include <algorithm>

#include "base/text/text.h"
#include "cli/stats/stats_table.h"
#include "stats/estimates/few_values.h"
#include "stats/estimates/quantile_ratio.h"
#include "stats/resamples/bootstrap.h"
#include "stats/samples/ecdf.h"
#include "stats/samples/series.h"
#include "stats/samples/trend.h"
#include "stats/sequential/confidence_sequence.h"

namespace assay::cli {
namespace {

using Kind = Parameter::Kind;

Result<StatsAnswer> describe(Given& in) {
  ASSAY_TRY(const std::vector<double> values, in.sample("a"));
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
  return StatsAnswer(row, in.facts("description of a sample: quantiles of type 7, sd with n - 1"));
}

Result<StatsAnswer> ecdf(Given& in) {
  ASSAY_TRY(const std::vector<double> values, in.sample("a"));
  Table table;
  for (const auto& step : stats::ecdf_steps(stats::sorted(values))) {
    FigureRow().add("value", step.value, 8).add("share", step.share).append_to(table);
  }
  return StatsAnswer(std::move(table), in.facts("empirical distribution"));
}

stats::BootstrapOptions bootstrap_options(const Given& in, stats::BootstrapMethod method) {
  return {static_cast<int64_t>(in.whole("resamples")), in.whole("seed"), in.number("confidence"),
          method};
}

Facts bootstrap_facts(const Given& in, const std::string& method) {
  Facts facts = in.facts(method);
  facts.set("resamples", in.whole("resamples")).set("seed", in.whole("seed")).sign("a / b");
  return facts;
}

StatsAnswer bootstrap_quantiles(const Given& in, std::vector<double> a, std::vector<double> b) {
  std::ranges::sort(a);
  std::ranges::sort(b);
  const double q = in.number("quantile");
  const double confidence = in.number("confidence");
  stats::QuantileBootstrap bootstrap(bootstrap_options(in, stats::BootstrapMethod::kPercentile));
  const auto of_a = stats::quantile_interval(a, q, confidence);
  FigureRow row;
  row.add("quantile", q).add("a", stats::quantile(a, q)).add("a_", of_a);
  if (!b.empty()) {
    const auto of_b = stats::quantile_interval(b, q, confidence);
    const auto ratio = bootstrap.ratio(a, b, q, 3);
    // Resamples hold nothing beyond the largest value, so few values know no tail, by any method.
    const bool is_sure = ratio && of_a && of_b;
    row.add("b", stats::quantile(b, q))
        .add("b_", of_b)
        .add("ratio", ratio ? std::optional(ratio->ratio) : std::nullopt)
        .add("ratio_", is_sure ? std::optional(ratio->interval) : std::nullopt);
  }
  const char* method =
      "a quantile by order statistics, absent where the values are too few for it; the ratio of "
      "two by percentile bootstrap, absent where one of theirs is";
  return {row, bootstrap_facts(in, method)};
}

StatsAnswer bootstrap_means(const Given& in, const std::vector<double>& a,
                            const std::vector<double>& b) {
  const auto bca = bootstrap_options(in, stats::BootstrapMethod::kBca);
  const auto percentile = bootstrap_options(in, stats::BootstrapMethod::kPercentile);
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
  return {row, bootstrap_facts(in, method)};
}

Result<StatsAnswer> bootstrap(Given& in) {
  ASSAY_TRY(const std::vector<double> a, in.sample("a"));
  std::vector<double> b;
  if (in.has("b")) {
    ASSAY_TRY(b, in.sample("b"));
  }
  constexpr double kMostDraws = 1e11;  // minutes
  const double draws = static_cast<double>(a.size() + b.size()) * in.number("resamples");
  if (draws > kMostDraws) {
    return bad_input("--resamples: expected at most 1e11 draws of all values, found {:.1e}", draws);
  }
  return in.has("quantile") ? bootstrap_quantiles(in, a, b) : bootstrap_means(in, a, b);
}

Result<StatsAnswer> autocorrelation(Given& in) {
  ASSAY_TRY(const std::vector<double> values, in.sample("a"));
  const auto n = static_cast<int64_t>(values.size());
  const int64_t count =
      in.has("lags") ? static_cast<int64_t>(in.whole("lags")) : std::clamp<int64_t>(n / 5, 1, 10);
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
    return bad_input("--lags: expected a Q within reach of chi-square, found {} lags of {}", count,
                     counted(n, "value"));
  }
  FigureRow row;
  row.add_count("n", n).add("r1", (*r)[1]).add("effective_n", size->size).add("tau", size->tau);
  row.add_count("lags", count).add("Q", box->q).add_p(box->p, box->log_p);
  Facts facts = in.facts("autocorrelation, Ljung and Box's Q, Geyer's effective size");
  return StatsAnswer(row, facts.sides("upper tail of chi-square"));
}

Result<StatsAnswer> trend(Given& in) {
  ASSAY_TRY(const std::vector<double> values, in.sample("a"));
  const auto test = stats::mann_kendall(values);
  if (!test) return bad_input("--a: expected at least 4 values that vary, found {}", values.size());
  std::vector<double> order;
  for (size_t i = 0; i < values.size(); ++i) order.push_back(static_cast<double>(i));
  const auto line = stats::theil_sen(order, values, in.number("confidence"));
  FigureRow row;
  row.add("S", test->s, 8).add("z", test->z).add_p(test->p, test->log_p);
  row.add("slope", line ? line->slope : stats::theil_sen_slope(order, values))
      .add("slope_", line ? line->interval : std::nullopt);
  Facts facts = in.facts("Mann and Kendall's test, Theil and Sen's slope a place");
  return StatsAnswer(row, facts.sides("two-sided").sign("above 0: values rise"));
}

Result<StatsAnswer> anytime(Given& in) {
  ASSAY_TRY(const std::vector<double> values, in.sample("a"));
  const double alpha = 1 - in.number("confidence");
  FigureRow row;
  row.add_count("n", static_cast<int64_t>(values.size()))
      .add("mean", stats::mean(values))
      .add("", stats::anytime_interval(values, alpha))
      .add_count("least_n", stats::least_looks(alpha));
  return StatsAnswer(row, in.facts("confidence sequence of a mean: the t test's Bayes factor, "
                                   "effects of N(0, 2^2), wider for dependence and skewness"));
}

Result<StatsAnswer> change_points(Given& in) {
  ASSAY_TRY(const std::vector<double> values, in.sample("a"));
  Table table;
  table.columns = {{"index"}, {"K"}, {"p"}, {"ln_p"}};
  for (const auto& change : stats::change_points(values, in.number("alpha"))) {
    FigureRow row;
    row.add_count("index", static_cast<int64_t>(change.index)).add("K", change.k, 8);
    row.add_p(change.p, change.log_p).append_to(table);
  }
  Facts facts = in.facts("Pettitt's test by binary segmentation");
  return StatsAnswer(std::move(table), facts.sides("two-sided").set("alpha", in.number("alpha")));
}

}  // namespace

std::vector<StatsSubcommand> stats_of_samples() {
  const Parameter a = sample("a");
  return {{"describe",
           "n, mean, sd, quantiles (type 7), trimmed mean, MAD, Tukey's fences",
           {a},
           describe},
          {"ecdf", "empirical distribution: share of the values up to each value", {a}, ecdf},
          {"bootstrap",
           "intervals of means (BCa, percentile), quantiles (order statistics) and their ratio",
           {a,
            {Kind::kSample, "b", "values of a second sample; adds the ratio of the two"},
            {Kind::kShare, "quantile", "use this quantile instead of the mean"},
            resamples(10'000'000),
            seed(),
            confidence("confidence of the intervals")},
           bootstrap},
          {"autocorrelation",
           "of values in their order: lag 1, Ljung-Box, effective sample size",
           {a,
            {.kind = Kind::kWhole,
             .name = "lags",
             .meaning = "lags of the Ljung-Box test (default: a fifth of n, at most 10)",
             .least = 1,
             .most = 1'000'000'000}},
           autocorrelation},
          {"trend",
           "drift along the order: Mann-Kendall and Theil-Sen",
           {a, confidence("confidence of the slope's interval")},
           trend},
          {"anytime",
           "interval of the mean that holds however often values are looked at",
           {a, confidence("of all intervals together")},
           anytime},
          {"changepoints",
           "rows at which the level of a series changes: Pettitt, by binary segmentation",
           {a, level("alpha", "level of each split", 0.01)},
           change_points}};
}

}  // namespace assay::cli
