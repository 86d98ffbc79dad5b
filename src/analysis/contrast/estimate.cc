// Estimates of pairs and of strata together, and their verdicts.
#include "analysis/contrast/estimate.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "analysis/contrast/any_look.h"
#include "analysis/contrast/dependence.h"
#include "analysis/contrast/process_range.h"
#include "analysis/findings/options.h"
#include "analysis/findings/spread_text.h"
#include "analysis/rows/processes.h"
#include "stats/samples/summary.h"

namespace assay {
namespace {

std::vector<double> shares(std::span<const double> values, double mean, double scale) {
  std::vector<double> of;
  for (const double value : values) of.push_back((value - mean) / scale);
  return of;
}

// The mean of the rounds' logarithms, and each round's distance from it.
void add_rounds(const PairUnits& units, Estimate& of) {
  std::vector<double> logs;
  for (size_t u = 0; u < units.arm_means.size(); ++u) {
    logs.push_back(std::log(units.arm_means[u] / units.baseline_means[u]));
  }
  const auto mean = stats::mean(logs);
  if (!of.paired || of.unit != ContrastUnit::kProcesses || !mean || !std::isfinite(*mean)) {
    of.why_absent =
        "its blocks ended as soon as its arms were decided, and no rounds of processes show the "
        "arms side by side";
    return;
  }
  of.log_ratio = *mean;
  of.shares = {{units.keys, shares(logs, *mean, 1)}};
}

}  // namespace

std::vector<UnitShares> shares_of(const PairUnits& units, std::vector<int64_t> keys,
                                  std::vector<int64_t> baseline_keys,
                                  const stats::StratumMoments& moments) {
  const stats::LogScales scales = stats::log_scales(moments);
  UnitShares arm{std::move(keys), shares(units.arm, moments.numerator.mean, scales.numerator)};
  UnitShares other{std::move(baseline_keys),
                   shares(units.baseline, moments.denominator.mean, -scales.denominator)};
  if (!moments.covariance) return {std::move(arm), std::move(other)};
  for (size_t u = 0; u < arm.values.size(); ++u) arm.values[u] += other.values[u];
  return {std::move(arm)};
}

std::optional<stats::StandardError> error_of_shares(
    std::span<const std::vector<UnitShares>> strata) {
  std::vector<stats::StandardError> samples;
  for (size_t s = 0; s < strata[0].size(); ++s) {
    std::map<int64_t, double> by_key;
    for (const std::vector<UnitShares>& stratum : strata) {
      if (stratum.size() != strata[0].size()) return std::nullopt;
      for (const int64_t key : stratum[s].keys) by_key[key] = 0;
    }
    const auto all = static_cast<double>(by_key.size());
    for (const std::vector<UnitShares>& stratum : strata) {
      const UnitShares& units = stratum[s];
      const auto n = static_cast<double>(units.values.size());
      const double weight =
          std::sqrt(all * (all - 1) / (n * (n - 1))) / static_cast<double>(strata.size());
      for (size_t u = 0; u < units.values.size(); ++u) {
        by_key[units.keys[u]] += weight * units.values[u];
      }
    }
    std::vector<double> values;
    for (const auto& [key, value] : by_key) values.push_back(value);
    const auto moments = stats::moments(values);
    if (!moments) return std::nullopt;
    samples.push_back(stats::error_of_mean(*moments));
  }
  return stats::error_of_sum(samples);
}

Estimate estimate_of(const Samples& samples, const Units& units, const GroupPair& pair,
                     const PairUnits& of_pair, const PairErrors& errors) {
  const Group& arm = samples.groups[pair.arm];
  const Group& other = samples.groups[pair.baseline];
  Estimate of{.unit = units.of(arm.stratum), .paired = units.paired(arm.stratum)};
  of.one_process =
      of.unit != ContrastUnit::kProcesses && (is_of_one_process(arm) || is_of_one_process(other));
  const double seen = errors.unseen.factor;
  of.beyond = errors.unseen.is_arms ? stats::Interval{1, seen} : stats::Interval{1 / seen, 1};
  if (was_looked_at(samples, arm.stratum)) {
    add_rounds(of_pair, of);
    return of;
  }
  const auto mean = stats::mean(of_pair.arm);
  const auto other_mean = stats::mean(of_pair.baseline);
  of.log_ratio = mean && other_mean ? std::log(*mean / *other_mean) : 0;
  if (!mean || !other_mean || !std::isfinite(of.log_ratio)) {
    of.why_absent = "no repetition of both arms was measured side by side";
    return of;
  }
  if (of.unit == ContrastUnit::kProcesses &&
      are_few_processes(std::ssize(of_pair.arm), std::ssize(of_pair.baseline))) {
    of.range = ratio_range(of_pair.arm_means, of_pair.baseline_means, of.paired);
    of.too_few = errors.spread.df.value_or(0) < kLeastFreedomOfInterval;
    of.unsure = errors.spread.unsure;
  }
  auto moments = pair_moments(of_pair, of.paired);
  if (!moments) return of;
  moments->apart = apart(arm, other);
  moments->widening = both(errors.widening, errors.spread.own);
  if (const auto ratio = stats::combined_log_ratio({&*moments, 1})) of.error = ratio->error;
  of.widening = errors.widening;
  if (of.unit == ContrastUnit::kProcesses) {
    of.shares = shares_of(of_pair, of_pair.keys, units.series(pair.baseline).keys, *moments);
  }
  return of;
}

std::vector<Estimate> estimates_of(const Samples& samples, const Units& units,
                                   std::span<const GroupPair> pairs) {
  const std::vector<PairErrors> errors = errors_of_pairs(samples, units, pairs);
  std::vector<Estimate> all;
  for (size_t i = 0; i < pairs.size(); ++i) {
    all.push_back(estimate_of(samples, units, pairs[i], units.pair(pairs[i]), errors[i]));
  }
  return all;
}

std::vector<std::pair<int64_t, Estimate>> estimates_of_rounds(const Samples& samples,
                                                              const Units& units,
                                                              const GroupPair& pair) {
  const Group& arm = samples.groups[pair.arm];
  std::vector<std::pair<int64_t, Estimate>> all;
  if (!units.paired(arm.stratum) || units.of(arm.stratum) != ContrastUnit::kProcesses) return all;
  std::vector<stats::StratumMoments> moments;
  std::vector<std::vector<double>> series;
  for (const PairedProcess& round : pair_up(samples, units, samples.groups[pair.baseline], arm)) {
    const auto of = pair_moments({round.cand_ms, round.base_ms, {}, {}}, true);
    if (!of) continue;
    moments.push_back(*of);
    const auto [least, most] = std::ranges::minmax(round.cand_ms);
    const auto [other_least, other_most] = std::ranges::minmax(round.base_ms);
    moments.back().apart = most < other_least || other_most < least;
    const std::vector<double> other = shares(round.base_ms, 0, of->denominator.mean);
    series.push_back(shares(round.cand_ms, 0, of->numerator.mean));
    for (size_t i = 0; i < other.size(); ++i) series.back()[i] -= other[i];
    all.emplace_back(round.number, Estimate{.unit = ContrastUnit::kRepetitions, .paired = true});
  }
  const std::vector<Dependence> alike = dependences(series);
  for (size_t i = 0; i < all.size(); ++i) {
    moments[i].widening = alike[i].widening;
    Estimate& of = all[i].second;
    of.log_ratio = std::log(moments[i].numerator.mean / moments[i].denominator.mean);
    if (const auto ratio = stats::combined_log_ratio({&moments[i], 1})) of.error = ratio->error;
  }
  return all;
}

Estimate inverted(Estimate estimate) {
  estimate.log_ratio = -estimate.log_ratio;
  estimate.range = inverted(estimate.range);
  estimate.beyond = *inverted(std::optional(estimate.beyond));
  for (UnitShares& sample : estimate.shares) {
    for (double& value : sample.values) value = -value;
  }
  std::ranges::reverse(estimate.shares);
  return estimate;
}

Estimate combine(std::span<const Estimate> parts) {
  if (parts.empty()) return {.why_absent = "no stratum can be compared"};
  if (parts.size() == 1) return parts[0];
  Estimate all{.unit = parts[0].unit, .paired = true};
  const auto count = static_cast<double>(parts.size());
  std::vector<stats::StandardError> errors;
  std::vector<std::vector<UnitShares>> shares;
  stats::Interval range{0, 0};
  stats::Interval beyond{0, 0};
  for (const Estimate& part : parts) {
    if (!part.why_absent.empty()) return part;
    all.log_ratio += part.log_ratio / count;
    if (part.unit != all.unit) all.unit = ContrastUnit::kRows;
    all.paired = all.paired && part.paired;
    all.one_process = all.one_process || part.one_process;
    all.too_few = all.too_few || part.range;
    const double ratio = std::exp(part.log_ratio);
    const stats::Interval own = part.range.value_or(stats::Interval{ratio, ratio});
    range = {range.low + std::log(own.low) / count, range.high + std::log(own.high) / count};
    beyond = {beyond.low + std::log(part.beyond.low) / count,
              beyond.high + std::log(part.beyond.high) / count};
    if (part.error) errors.push_back({part.error->value / count, part.error->df});
    shares.push_back(part.shares);
    const auto width = [](const stats::Widening& by) { return std::pair(by.error, -by.df); };
    if (width(part.widening) > width(all.widening)) all.widening = part.widening;
  }
  if (all.too_few) all.range = stats::exp_of(range);
  all.beyond = stats::exp_of(beyond);
  if (errors.size() < parts.size()) return all;
  if (all.unit == ContrastUnit::kProcesses) {
    if (const auto together = error_of_shares(shares)) all.error = together->widened(all.widening);
  }
  if (!all.error) all.error = stats::error_of_sum(errors);
  return all;
}

SpreadRatio shown(const Estimate& of) {
  SpreadRatio shown{std::exp(of.log_ratio), std::nullopt};
  if (of.too_few) {
    shown.process_range = of.range;
  } else if (of.error) {
    shown.interval = stats::t_interval_of_ratio(of.log_ratio, *of.error, kConfidence);
  }
  for (auto* interval : {&shown.interval, &shown.process_range}) {
    if (*interval)
      *interval = {(*interval)->low * of.beyond.low, (*interval)->high * of.beyond.high};
  }
  return shown;
}

void test_ratios(std::span<JudgedRatio* const> family, const JudgeOptions& options,
                 bool equivalence) {
  const double margin = std::log1p(options.margin);
  for (JudgedRatio* one : family) {
    if (!one->ratio || !one->ratio->error || one->ratio->unsure) continue;
    one->test = stats::t_test(one->ratio->log_ratio, *one->ratio->error);
    if (!equivalence) continue;
    one->tost = stats::tost(one->ratio->log_ratio, *one->ratio->error, -margin, margin);
  }
}

void judge_ratios(const std::vector<JudgedRatio*>& family, const JudgeOptions& options) {
  adjust_by_holm(family, &JudgedRatio::test, &JudgedRatio::p_holm);
  adjust_by_holm(family, &JudgedRatio::tost, &JudgedRatio::tost_p_holm);
  for (JudgedRatio* one : family) {
    if (!one->ratio) continue;
    const Estimate& of = *one->ratio;
    one->shown = shown(of);
    one->decided = verdict_of({one->shown->ratio, one->shown->interval, of.too_few,
                               one->shown->process_range, of.one_process},
                              {one->p_holm, one->tost_p_holm}, options.alpha, options.margin);
  }
}

}  // namespace assay
