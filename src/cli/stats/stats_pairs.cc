// assay stats: two samples whose i-th values were taken together.
#include <cmath>

#include "cli/stats/stats_input.h"
#include "stats/estimates/few_values.h"
#include "stats/estimates/ratio.h"
#include "stats/hypotheses/equivalence.h"

namespace assay::cli {
namespace {

struct PairedInput {
  std::shared_ptr<GroupInput> a;
  std::shared_ptr<GroupInput> b;
  std::optional<double> ratio_margin;
  int64_t resamples = 10000;
  uint64_t seed = 42;
  std::shared_ptr<double> confidence;
};

// Interval of the ratio of the means, by resampling pairs. Absent unless both are above 0.
std::optional<stats::Interval> ratio_interval(const PairedInput& in, const std::vector<double>& a,
                                              const std::vector<double>& b) {
  const stats::BootstrapOptions options = {in.resamples, in.seed, *in.confidence,
                                           stats::BootstrapMethod::kPercentile};
  const stats::BootstrapSample samples[] = {{a, 1}, {b, 1}};  // one stream: the same pairs of each
  const auto resampled = stats::resample_means(samples, options, nullptr);
  if (!resampled[0] || !resampled[1]) return std::nullopt;
  const stats::RatioPair pair[] = {{&*resampled[0], &*resampled[1]}};
  const std::vector<stats::LogTerm> together[] = {{{a, 1}, {b, -1}}};
  return stats::calibrated_ratio_interval(pair, together, options);
}

Result<int> run_paired(const PairedInput& in, OutputFormat format) {
  ASSAY_TRY(const std::vector<double> a, in.a->sample());
  ASSAY_TRY(const std::vector<double> b, in.b->sample());
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
      .add("", stats::t_interval(difference, *error, *in.confidence))
      .add("t", test ? std::optional(test->statistic) : std::nullopt)
      .add("df", error->df)
      .add_p(test)
      .add("ratio", has_ratio ? std::optional(of_a->mean / of_b->mean) : std::nullopt)
      .add("ratio_", has_ratio ? ratio_interval(in, a, b) : std::nullopt);
  Facts facts("t test of paired values; interval of the ratio of means by resampling pairs");
  facts.sides("two-sided").confidence(*in.confidence).sign("a - b, a / b");
  facts.set("resamples", in.resamples).set("seed", in.seed);
  facts.input("a", sample_json(a, in.a->values)).input("b", sample_json(b, in.b->values));
  if (in.ratio_margin) {
    const double m = *in.ratio_margin;
    row.add_p(has_ratio ? stats::tost_ratio(pair, 1 / (1 + m), 1 + m) : std::nullopt, "_tost");
    facts.set("ratio_margin", m);
  }
  return row.print(format, facts);
}

}  // namespace

void add_stats_pairs(CLI::App& parent, Selected& selected) {
  CLI::App* command = parent.add_subcommand(
      "paired", "t test and ratio of means of values that were taken in pairs");
  const auto in = std::make_shared<PairedInput>();
  in->a = add_sample(*command, "a");
  in->b = add_sample(*command, "b");
  command
      ->add_option("--ratio-margin", in->ratio_margin,
                   "add p of the two one-sided tests for a ratio from 1/(1+m) to 1+m")
      ->check(check_number_above_zero);
  command->add_option("--resamples", in->resamples, "resamples of the ratio's interval")
      ->check(check_whole(100, 1'000'000))
      ->capture_default_str();
  command->add_option("--seed", in->seed, "seed of the resamples")
      ->check(check_whole(0, UINT64_MAX))
      ->capture_default_str();
  in->confidence = add_level(*command, "--confidence", 0.95, "confidence of the intervals");
  set_body(*command, selected, [=](OutputFormat format) { return run_paired(*in, format); });
}

}  // namespace assay::cli
