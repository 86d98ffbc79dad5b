// One pair of arms on one stratum, and the family it belongs to.
#include "analysis/contrast/contrast.h"

#include <set>

#include "analysis/contrast/any_look.h"
#include "analysis/contrast/estimate.h"
#include "analysis/contrast/process_range.h"
#include "analysis/contrast/resampling.h"
#include "analysis/contrast/row_statistics.h"
#include "analysis/contrast/typical.h"
#include "analysis/contrast/verdict.h"
#include "analysis/contrast/widenings.h"
#include "analysis/rows/processes.h"
#include "base/text/counts.h"
#include "stats/estimates/few_values.h"
#include "stats/estimates/ratio.h"
#include "stats/power/power.h"

namespace assay {
namespace {

void add_mean_tests(const stats::StratumMoments& pair, const Estimate& ratio,
                    const AnalysisOptions& options, Contrast& contrast) {
  const auto error = stats::difference_error(pair);
  const double difference = pair.numerator.mean - pair.denominator.mean;
  contrast.tost = stats::tost_ratio(pair, 1 / (1 + options.margin), 1 + options.margin);
  if (!error) return add_constant_tests({&pair, 1}, options, contrast);
  // Samples that don't overlap are tested by their ratio: see stats::log_scale().
  const bool of_ratio = pair.apart && ratio.error;
  contrast.test =
      of_ratio ? stats::t_test(ratio.log_ratio, *ratio.error) : stats::t_test(difference, *error);
  contrast.difference_interval_ms = stats::t_interval(difference, *error, kConfidence);
  const auto smallest = stats::minimum_detectable_difference(*error, options.alpha, options.power);
  if (smallest) contrast.minimum_detectable = *smallest / pair.denominator.mean;
}

// The bootstrap's interval of the ratio of the units' means.
std::optional<stats::Interval> bootstrapped(const ContrastInputs& in,
                                            const PairResamples& resampled, const GroupPair& pair,
                                            const PairUnits& units) {
  const auto& of = resampled.arm(pair);
  const auto& of_base = resampled.baseline(pair);
  if (!of || !of_base) return std::nullopt;
  const stats::RatioPair means[] = {{&*of, &*of_base}};
  if (!in.units.paired(in.samples.groups[pair.arm].stratum))
    return stats::calibrated_ratio_interval(means, ratio_bootstrap(in.options));
  const std::vector<stats::LogTerm> together[] = {{{units.arm, 1}, {units.baseline, -1}}};
  return stats::calibrated_ratio_interval(means, together, ratio_bootstrap(in.options));
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

// Takes away t intervals of one or two degrees of freedom.
void leave_without_intervals(Contrast& contrast) {
  contrast.ratio_interval.reset();
  contrast.difference_interval_ms.reset();
}

// Two processes whose spread can't be trusted: their range alone decides (verdict.h).
void leave_untested(Contrast& contrast) {
  contrast.test.reset();
  contrast.tost.reset();
  contrast.minimum_detectable.reset();
}

}  // namespace

std::optional<stats::StratumMoments> pair_moments(const PairUnits& units, bool paired) {
  const auto arm = stats::moments(units.arm);
  const auto base = stats::moments(units.baseline);
  if (!arm || !base) return std::nullopt;
  stats::StratumMoments moments{*arm, *base};
  if (paired) moments.covariance = stats::covariance(units.arm, units.baseline);
  return moments;
}

void allow_for_unseen(const UnseenTail& unseen, Contrast& contrast) {
  if (!(unseen.factor > 1)) return;
  contrast.unseen_slow_factor = unseen.factor;
  contrast.slow_arm = unseen.is_arms ? contrast.arm : contrast.baseline;
  for (auto* interval : {&contrast.ratio_interval, &contrast.ratio_process_range}) {
    if (!*interval) continue;
    (unseen.is_arms ? (*interval)->high : (*interval)->low) *=
        unseen.is_arms ? unseen.factor : 1 / unseen.factor;
  }
}

int64_t independent_strata(const Contrast& contrast) {
  return contrast.unit == ContrastUnit::kProcesses ? 1 : contrast.strata;
}

std::optional<stats::Interval> widened_ratio(const std::optional<stats::Interval>& interval,
                                             const Contrast& contrast,
                                             const stats::Widening& widening) {
  if (!interval) return std::nullopt;
  const int64_t freedom =
      contrast.paired ? contrast.units_arm - 1 : contrast.units_arm + contrast.units_baseline - 2;
  const auto df = static_cast<double>(freedom * independent_strata(contrast));
  return stats::stretched(*interval, contrast.ratio,
                          stats::interval_widening(df, widening, kConfidence));
}

std::vector<std::string> reasons_against(const Group& group, const AnalysisOptions& options) {
  std::vector<std::string> reasons = reasons_against_survivors(group, options);
  const int64_t failed = group.failed();
  if (failed > 0) {
    reasons.insert(reasons.begin(),
                   fmt::format("lost {} of {}", failed, counted(group.rows.size(), "row")));
  }
  return reasons;
}

std::vector<std::string> reasons_against_survivors(const Group& group,
                                                   const AnalysisOptions& options) {
  std::vector<std::string> reasons;
  if (group.parity_failed) reasons.emplace_back("parity failed");
  if (static_cast<int64_t>(group.warm.size()) < options.minimum_rows) {
    reasons.push_back(fmt::format("{}, needs {}", counted(std::ssize(group.warm), "warm ok row"),
                                  options.minimum_rows));
  }
  return reasons;
}

bool same_prompts(const Group& a, const Group& b) {
  return prompts(a) == prompts(b);
}

Verdict judge(const Contrast& contrast, const AnalysisOptions& options) {
  const ShownRatio shown{contrast.ratio, contrast.ratio_interval, has_few_processes(contrast),
                         contrast.ratio_process_range,
                         contrast.one_process && !options.allow_single_process};
  if (contrast.any_look) return withheld(shown) ? Verdict::kInconclusive : contrast.verdict;
  const Verdict tested =
      verdict_of(shown, {contrast.p_holm, contrast.tost_p_holm}, options.alpha, options.margin);
  // The tests' normal distribution is the bootstrap's to confirm.
  const bool unconfirmed = tested != Verdict::kEquivalent && !contrast.ratio_interval;
  return unconfirmed ? Verdict::kInconclusive : tested;
}

std::vector<PairErrors> errors_of_pairs(const Samples& samples, const Units& units,
                                        std::span<const GroupPair> pairs) {
  const std::vector<stats::Widening> widenings = contrast_widenings(samples, units, pairs);
  const std::vector<SharedSpread> spreads = spreads_of_pairs(samples, units, pairs);
  const std::vector<UnseenTail> unseen = unseen_tails(samples, pairs);
  std::vector<PairErrors> errors;
  for (size_t i = 0; i < pairs.size(); ++i) errors.push_back({widenings[i], spreads[i], unseen[i]});
  return errors;
}

Contrast contrast_pair(const ContrastInputs& in, const PairResamples& resampled,
                       const GroupPair& pair, const PairErrors& errors) {
  const Group& group = in.samples.groups[pair.arm];
  const Group& base = in.samples.groups[pair.baseline];
  const PairUnits units = in.units.pair(pair);
  Contrast contrast;
  contrast.widening = errors.widening;
  contrast.shared_df = errors.spread.df;
  contrast.phase = in.samples.strata[group.stratum].phase;
  contrast.stratum = group.stratum;
  contrast.arm = in.samples.arms[group.arm];
  contrast.baseline = in.samples.arms[base.arm];
  contrast.n_arm = static_cast<int64_t>(group.warm.size());
  contrast.n_baseline = static_cast<int64_t>(base.warm.size());
  const Estimate estimate = estimate_of(in.samples, in.units, pair, units, errors);
  contrast.unit = estimate.unit;
  contrast.paired = estimate.paired;
  contrast.one_process = estimate.one_process;
  contrast.units_arm = static_cast<int64_t>(units.arm.size());
  contrast.units_baseline = static_cast<int64_t>(units.baseline.size());
  contrast.left_out = units.left_out;
  contrast.median_ratio = *stats::median(group.sorted_ms) / *stats::median(base.sorted_ms);
  const auto mean = stats::mean(units.arm);
  const auto base_mean = stats::mean(units.baseline);
  if (!mean || !base_mean) {  // no unit in common: the rows' ratio, untested
    contrast.ratio = *stats::mean(group.warm_ms) / *stats::mean(base.warm_ms);
    add_row_effects(in, pair, contrast);
    return contrast;
  }
  contrast.ratio = *mean / *base_mean;
  contrast.difference_ms = *mean - *base_mean;
  if (was_looked_at(in.samples, group.stratum)) {
    contrast_at_any_look(estimate, in.samples.arms.size(), contrast);
    allow_for_unseen(errors.unseen, contrast);
    add_row_effects(in, pair, contrast);
    contrast.verdict =
        verdict_at_any_look(contrast, margin_at_any_look(in.samples, group.stratum, in.options));
    return contrast;
  }
  const stats::Widening widening = both(errors.widening, errors.spread.own);
  contrast.ratio_interval =
      widened_ratio(bootstrapped(in, resampled, pair, units), contrast, widening);
  if (has_few_processes(contrast)) {
    contrast.ratio_process_range = estimate.range;
    contrast.difference_process_range_ms =
        difference_range(units.arm_means, units.baseline_means, contrast.paired);
  }
  contrast.typical = typical_ratio(in, pair, errors.widening, kConfidence);
  auto moments = pair_moments(units, contrast.paired);
  if (moments) {
    moments->widening = widening;
    moments->apart = apart(group, base);
    add_mean_tests(*moments, estimate, in.options, contrast);
    // A bootstrap of two or three values knows no more of their spread than they do.
    const bool few = are_few_processes(contrast.units_arm, contrast.units_baseline);
    if (few && contrast.shared_df && estimate.error) {
      contrast.ratio_interval =
          stats::t_interval_of_ratio(estimate.log_ratio, *estimate.error, kConfidence);
    }
  }
  if (errors.spread.unsure) leave_untested(contrast);
  allow_for_unseen(errors.unseen, contrast);
  add_row_effects(in, pair, contrast);
  return contrast;
}

void adjust_and_judge(std::vector<Contrast*>& family, size_t lost, const AnalysisOptions& options) {
  adjust_by_holm(family, &Contrast::test, &Contrast::p_holm, lost);
  adjust_by_holm(family, &Contrast::tost, &Contrast::tost_p_holm, lost);
  for (Contrast* contrast : family) {
    contrast->verdict = judge(*contrast, options);
    if (has_few_processes(*contrast)) leave_without_intervals(*contrast);
  }
}

}  // namespace assay
