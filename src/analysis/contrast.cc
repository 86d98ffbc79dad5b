// One pair of arms on one stratum, and the family it belongs to.
#include "analysis/contrast.h"

#include <set>

#include "analysis/describe.h"
#include "stats/effect.h"
#include "stats/few_values.h"
#include "stats/multiple.h"
#include "stats/power.h"
#include "stats/ratio.h"

namespace assay {
namespace {

// Of samples that don't overlap the test of the ratio, else Welch's of the difference: see
// stats::log_scale().
std::optional<stats::TestResult> test_of_means(const stats::StratumMoments& pair, double difference,
                                               const stats::StandardError& error) {
  if (!pair.apart) return stats::t_test(difference, error);
  const stats::StratumMoments one[] = {pair};
  const auto ratio = stats::combined_log_ratio(one);
  return ratio ? stats::log_ratio_test(*ratio) : std::nullopt;
}

void add_mean_tests(const stats::StratumMoments& pair, const AnalysisOptions& options,
                    Contrast& contrast) {
  const stats::Moments& arm = pair.numerator;
  const stats::Moments& base = pair.denominator;
  contrast.tost =
      stats::tost_ratio(arm, base, 1 / (1 + options.margin), 1 + options.margin, contrast.widening);
  contrast.cohen_d = stats::cohen_d(arm, base);
  contrast.hedges_g = stats::hedges_g(arm, base);
  const auto independent = stats::welch_standard_error(arm, base);
  if (!independent) return add_constant_tests({&pair, 1}, options, contrast);
  const stats::StandardError error = independent->widened(contrast.widening);
  contrast.test = test_of_means(pair, arm.mean - base.mean, error);
  contrast.difference_interval_ms =
      stats::t_interval(arm.mean - base.mean, error, options.confidence);
  const auto smallest = stats::minimum_detectable_difference(error, options.alpha, options.power);
  if (smallest) contrast.minimum_detectable = *smallest / base.mean;
}

std::set<std::pair<std::string, int64_t>> prompts(const Group& group) {
  std::set<std::pair<std::string, int64_t>> all;
  const Row* last = nullptr;
  for (const Row* row : group.warm) {
    const bool again = last != nullptr && row->prompt_tokens == last->prompt_tokens &&
                       row->prompt_id == last->prompt_id;
    if (!again) all.emplace(row->prompt_id, row->prompt_tokens);
    last = row;
  }
  return all;
}

// Adjusts the values of the family that have one.
template <typename Raw, typename Adjusted>
void adjust(const std::vector<Contrast*>& family, const Raw& raw, const Adjusted& adjusted) {
  std::vector<double> p_values;
  for (const Contrast* contrast : family) {
    if (raw(*contrast)) p_values.push_back(raw(*contrast)->p);
  }
  const std::vector<double> holm = stats::holm(p_values);
  size_t next = 0;
  for (Contrast* contrast : family) {
    if (raw(*contrast)) adjusted(*contrast) = holm[next++];
  }
}

}  // namespace

std::optional<stats::Interval> widened_ratio(const std::optional<stats::Interval>& interval,
                                             const Contrast& contrast,
                                             const AnalysisOptions& options) {
  if (!interval) return std::nullopt;
  const auto df = static_cast<double>(contrast.n_arm + contrast.n_baseline - 2 * contrast.strata);
  return stats::stretched(*interval, contrast.ratio,
                          stats::interval_widening(df, contrast.widening, options.confidence));
}

std::vector<std::string> reasons_against(const Group& group, const AnalysisOptions& options) {
  std::vector<std::string> reasons;
  const int64_t failed = group.failed();
  if (failed > 0) {
    reasons.push_back(fmt::format("lost {} of {} rows", failed, group.rows.size()));
  }
  if (group.parity_failed) reasons.emplace_back("parity failed");
  if (static_cast<int64_t>(group.warm.size()) < options.minimum_rows) {
    reasons.push_back(
        fmt::format("{} warm ok rows, needs {}", group.warm.size(), options.minimum_rows));
  }
  return reasons;
}

bool same_prompts(const Group& a, const Group& b) {
  return prompts(a) == prompts(b);
}

Verdict judge(const Contrast& contrast, const AnalysisOptions& options) {
  if (contrast.tost_p_holm && *contrast.tost_p_holm < options.alpha) return Verdict::kEquivalent;
  if (!contrast.p_holm || *contrast.p_holm >= options.alpha) return Verdict::kInconclusive;
  if (!contrast.ratio_interval || contrast.ratio_interval->contains(1)) {
    return Verdict::kInconclusive;
  }
  return contrast.ratio < 1 ? Verdict::kFaster : Verdict::kSlower;
}

Contrast contrast_pair(const Samples& samples, const Resampled& resampled, const GroupPair& pair,
                       const stats::Widening& widening, const AnalysisOptions& options) {
  const Group& group = samples.groups[pair.arm];
  const Group& base = samples.groups[pair.baseline];
  Contrast contrast;
  contrast.widening = widening;
  contrast.phase = samples.strata[group.stratum].phase;
  contrast.stratum = group.stratum;
  contrast.arm = samples.arms[group.arm];
  contrast.baseline = samples.arms[base.arm];
  contrast.n_arm = static_cast<int64_t>(group.warm.size());
  contrast.n_baseline = static_cast<int64_t>(base.warm.size());
  const double mean = *stats::mean(group.warm_ms);
  const double base_mean = *stats::mean(base.warm_ms);
  contrast.ratio = mean / base_mean;
  contrast.difference_ms = mean - base_mean;
  contrast.median_ratio = *stats::median(group.sorted_ms) / *stats::median(base.sorted_ms);
  const auto& of = resampled[pair.arm];
  const auto& of_base = resampled[pair.baseline];
  if (of && of_base) {
    const stats::RatioPair means[] = {{&*of, &*of_base}};
    contrast.ratio_interval = widened_ratio(
        stats::calibrated_ratio_interval(means, ratio_bootstrap(options)), contrast, options);
  }
  contrast.rank = stats::mann_whitney(group.warm_ms, base.warm_ms);
  const auto arm_moments = stats::moments(group.warm_ms);
  const auto base_moments = stats::moments(base.warm_ms);
  if (arm_moments && base_moments) {
    add_mean_tests({*arm_moments, *base_moments, widening, apart(group, base)}, options, contrast);
  }
  return contrast;
}

void adjust_and_judge(std::vector<Contrast*>& family, const AnalysisOptions& options) {
  adjust(
      family, [](const Contrast& c) -> const auto& { return c.test; },
      [](Contrast & c) -> auto& { return c.p_holm; });
  adjust(
      family, [](const Contrast& c) -> const auto& { return c.tost; },
      [](Contrast & c) -> auto& { return c.tost_p_holm; });
  for (Contrast* contrast : family) contrast->verdict = judge(*contrast, options);
}

}  // namespace assay
