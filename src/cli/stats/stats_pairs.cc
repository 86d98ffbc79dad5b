// assay stats: two samples whose i-th values were taken together.
#include <cmath>

#include "cli/stats/stats_table.h"
#include "stats/estimates/few_values.h"
#include "stats/estimates/ratio.h"
#include "stats/hypotheses/equivalence.h"

namespace assay::cli {
namespace {

// Interval of the ratio of the means, by resampling pairs. Absent unless both are above 0.
std::optional<stats::Interval> ratio_interval(const Given& in, const std::vector<double>& a,
                                              const std::vector<double>& b) {
  const stats::BootstrapOptions options = {static_cast<int64_t>(in.whole("resamples")),
                                           in.whole("seed"), in.number("confidence"),
                                           stats::BootstrapMethod::kPercentile};
  const stats::BootstrapSample samples[] = {{a, 1}, {b, 1}};  // one stream: the same pairs of each
  const auto resampled = stats::resample_means(samples, options, nullptr);
  if (!resampled[0] || !resampled[1]) return std::nullopt;
  const stats::RatioPair pair[] = {{&*resampled[0], &*resampled[1]}};
  const std::vector<stats::LogTerm> together[] = {{{a, 1}, {b, -1}}};
  return stats::calibrated_ratio_interval(pair, together, options);
}

Result<StatsAnswer> paired(Given& in) {
  ASSAY_TRY(const std::vector<double> a, in.sample("a"));
  ASSAY_TRY(const std::vector<double> b, in.sample("b"));
  if (a.size() != b.size()) {
    return bad_input("a and b: expected as many values in b as in a, found {} and {}", a.size(),
                     b.size());
  }
  const auto of_a = stats::moments(a);
  const auto of_b = stats::moments(b);
  std::optional<stats::StandardError> error;
  stats::StratumMoments pair;
  if (of_a && of_b) {
    pair = {*of_a, *of_b};
    pair.covariance = stats::covariance(a, b);
    error = stats::difference_error(pair);
  }
  if (!error) {
    return bad_input(
        "a and b: expected at least 2 pairs, differences that vary, and squares that a double "
        "holds");
  }
  const double difference = of_a->mean - of_b->mean;
  const auto test = stats::t_test(difference, *error);
  const bool has_ratio = of_a->mean > 0 && of_b->mean > 0;
  FigureRow row;
  row.add_count("pairs", of_a->n)
      .add("difference", difference)
      .add("se", error->value)
      .add("", stats::t_interval(difference, *error, in.number("confidence")))
      .add("t", test ? std::optional(test->statistic) : std::nullopt)
      .add("df", error->df)
      .add_p(test)
      .add("ratio", has_ratio ? std::optional(of_a->mean / of_b->mean) : std::nullopt)
      .add("ratio_", has_ratio ? ratio_interval(in, a, b) : std::nullopt);
  Facts facts =
      in.facts("t test of paired values; interval of the ratio of means by resampling pairs");
  facts.sides("two-sided").sign("a - b, a / b");
  facts.set("resamples", in.whole("resamples")).set("seed", in.whole("seed"));
  if (const auto m = in.number_if_given("ratio-margin")) {
    row.add_p(has_ratio ? stats::tost_ratio(pair, 1 / (1 + *m), 1 + *m) : std::nullopt, "_tost");
    facts.set("ratio_margin", *m);
  }
  return StatsAnswer(row, std::move(facts));
}

}  // namespace

StatsSubcommand stats_of_pairs() {
  return {"paired",
          "t test and ratio of means of values that were taken in pairs",
          {sample("a"),
           sample("b"),
           {Parameter::Kind::kPositive, "ratio-margin",
            "add p of the two one-sided tests for a ratio from 1/(1+m) to 1+m"},
           resamples(1'000'000),
           seed(),
           confidence("confidence of the intervals")},
          paired};
}

}  // namespace assay::cli
