// Rows by unit.
#include "analysis/contrast/row_statistics.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/contrast/process_range.h"
#include "analysis/contrast/widenings.h"
#include "stats/hypotheses/effect.h"
#include "stats/hypotheses/tests.h"
#include "stats/samples/summary.h"

namespace assay {
namespace {

bool by_rounds(const ContrastInputs& in, const GroupPair& pair) {
  return in.units.of(in.samples.groups[pair.arm].stratum) == ContrastUnit::kProcesses;
}

// ln of the quantile of each unit's rows, by the unit's key. Empty where one isn't positive.
std::map<int64_t, double> log_quantiles(const ContrastInputs& in, size_t group, double p) {
  const UnitSeries& series = in.units.series(group);
  const std::vector<double>& ms = in.samples.groups[group].warm_ms;
  std::vector<std::vector<double>> by_unit(series.keys.size());
  for (size_t i = 0; i < ms.size(); ++i) by_unit[series.of_row[i]].push_back(ms[i]);
  std::map<int64_t, double> logs;
  for (size_t u = 0; u < by_unit.size(); ++u) {
    const double log = std::log(*stats::quantile_in_place(by_unit[u], p));
    if (!std::isfinite(log)) return {};
    logs[series.keys[u]] = log;
  }
  return logs;
}

struct LogDifference {
  double mean = 0;
  stats::StandardError error;
};

std::optional<LogDifference> paired_difference(const std::map<int64_t, double>& arm,
                                               const std::map<int64_t, double>& base) {
  std::vector<double> differences;
  for (const auto& [round, log] : arm) {
    const auto other = base.find(round);
    if (other != base.end()) differences.push_back(log - other->second);
  }
  const auto moments = stats::moments(differences);
  if (!moments) return std::nullopt;
  return LogDifference{moments->mean, stats::error_of_mean(*moments)};
}

std::optional<LogDifference> unpaired_difference(const std::map<int64_t, double>& arm,
                                                 const std::map<int64_t, double>& base) {
  const auto moments_of = [](const std::map<int64_t, double>& logs) {
    std::vector<double> values;
    for (const auto& [process, log] : logs) values.push_back(log);
    return stats::moments(values);
  };
  const auto of_arm = moments_of(arm);
  const auto of_base = moments_of(base);
  if (!of_arm || !of_base) return std::nullopt;
  const auto error = stats::welch_standard_error(*of_arm, *of_base);
  return error ? std::optional(LogDifference{of_arm->mean - of_base->mean, *error}) : std::nullopt;
}

// The quantiles themselves: of paired arms those of the rounds that both have.
std::optional<stats::Interval> quantile_range(const std::map<int64_t, double>& arm,
                                              const std::map<int64_t, double>& base, bool paired) {
  const auto values = [paired](const auto& of, const auto& other) {
    std::vector<double> quantiles;
    for (const auto& [round, log] : of) {
      if (!paired || other.contains(round)) quantiles.push_back(std::exp(log));
    }
    return quantiles;
  };
  return ratio_range(values(arm, base), values(base, arm), paired);
}

std::vector<double> kept_ms(const Group& group, const KeptRows& kept) {
  std::vector<double> ms;
  for (size_t i = 0; i < kept.size(); ++i) {
    if (kept[i]) ms.push_back(group.warm_ms[i]);
  }
  return ms;
}

}  // namespace

std::optional<SpreadRatio> quantile_ratio_by_units(const ContrastInputs& in, const GroupPair& pair,
                                                   double p, const stats::Widening& widening,
                                                   stats::QuantileBootstrap& quantiles) {
  const Group& arm = in.samples.groups[pair.arm];
  if (!by_rounds(in, pair)) {
    const auto ratio = quantiles.ratio(arm.sorted_ms, in.samples.groups[pair.baseline].sorted_ms, p,
                                       stream_of(in.samples, arm));
    if (!ratio) return std::nullopt;
    return SpreadRatio{ratio->ratio,
                       stats::stretched(ratio->interval, ratio->ratio, widening.error)};
  }
  const std::map<int64_t, double> of_arm = log_quantiles(in, pair.arm, p);
  const std::map<int64_t, double> of_base = log_quantiles(in, pair.baseline, p);
  const bool paired = in.units.paired(arm.stratum);
  const auto difference =
      paired ? paired_difference(of_arm, of_base) : unpaired_difference(of_arm, of_base);
  if (!difference) return std::nullopt;
  if (are_few_processes(std::ssize(of_arm), std::ssize(of_base))) {
    return SpreadRatio{std::exp(difference->mean), std::nullopt,
                       quantile_range(of_arm, of_base, paired)};
  }
  const auto interval = stats::t_interval_of_ratio(
      difference->mean, difference->error.widened(widening), kConfidence);
  if (!interval) return std::nullopt;
  return SpreadRatio{std::exp(difference->mean), interval};
}

std::optional<stats::TestResult> test_of_rows(const ContrastInputs& in, const GroupPair& pair,
                                              const KeptRows& of_arm, const KeptRows& of_baseline,
                                              const stats::Widening& widening) {
  const Group& arm = in.samples.groups[pair.arm];
  const Group& base = in.samples.groups[pair.baseline];
  const bool paired = in.units.paired(arm.stratum);
  std::optional<stats::StratumMoments> moments;
  if (by_rounds(in, pair)) {
    moments = pair_moments(
        pair_units(without_rows(in.units.series(pair.arm), arm, of_arm),
                   without_rows(in.units.series(pair.baseline), base, of_baseline), paired),
        paired);
  } else {
    moments = pair_moments({kept_ms(arm, of_arm), kept_ms(base, of_baseline), {}, {}}, false);
  }
  if (!moments) return std::nullopt;
  moments->widening = widening;
  const auto error = stats::difference_error(*moments);
  if (!error) return std::nullopt;
  return stats::t_test(moments->numerator.mean - moments->denominator.mean, *error);
}

void add_row_effects(const ContrastInputs& in, const GroupPair& pair, Contrast& contrast) {
  const Group& arm = in.samples.groups[pair.arm];
  const Group& base = in.samples.groups[pair.baseline];
  if (const auto rank = stats::mann_whitney(arm.warm_ms, base.warm_ms)) {
    contrast.mann_whitney_u = rank->u;
    contrast.vargha_delaney_a = rank->a;
  }
  const auto of_arm = stats::moments(arm.warm_ms);
  const auto of_base = stats::moments(base.warm_ms);
  if (!of_arm || !of_base) return;
  contrast.cohen_d = stats::cohen_d(*of_arm, *of_base);
  contrast.hedges_g = stats::hedges_g(*of_arm, *of_base);
}

stats::Widening pair_widening(const ContrastInputs& in, const GroupPair& pair) {
  return contrast_widenings(in.samples, in.units, {&pair, 1})[0];
}

}  // namespace assay
