// Ratios of two cells.
#include "portability/ratio_of_cells.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "analysis/contrast/process_range.h"
#include "stats/estimates/ratio.h"
#include "stats/samples/summary.h"

namespace assay {
namespace {

// One arm's rows in the units that repeat: rounds of processes, else rows.
struct ArmUnits {
  std::vector<int64_t> numbers;
  std::vector<double> values_ms;  // unit_values()
  stats::Interval range_ms{std::numeric_limits<double>::infinity(),
                           -std::numeric_limits<double>::infinity()};  // of single rows
};

ArmUnits units_of(const RegimeCell& cell) {
  UnitSeries series;
  ArmUnits units;
  std::map<int64_t, size_t> places;
  for (size_t i = 0; i < cell.rows.size(); ++i) {
    const MeasuredRow& row = cell.rows[i];
    const int64_t number = cell.by_rounds ? row.round : static_cast<int64_t>(i);
    const auto [at, fresh] = places.try_emplace(number, units.numbers.size());
    if (fresh) {
      units.numbers.push_back(number);
      series.rows.push_back(0);
      series.mean_ms.push_back(0);
    }
    ++series.rows[at->second];
    series.mean_ms[at->second] += row.ms;
    units.range_ms = {std::min(units.range_ms.low, row.ms), std::max(units.range_ms.high, row.ms)};
  }
  for (size_t u = 0; u < series.rows.size(); ++u) {
    series.mean_ms[u] /= static_cast<double>(series.rows[u]);
  }
  units.values_ms = unit_values(series);
  return units;
}

// Welch's ratio as values: each unit moves the log ratio by its distance from its arm's mean over
// the arm's scale and count, and all are stretched so that the error of their mean is Welch's.
std::optional<PairedRatio> ratio_of_apart(const RegimeCell& arm, const RegimeCell& base) {
  const ArmUnits of_arm = units_of(arm);
  const ArmUnits of_base = units_of(base);
  const auto arm_mean = stats::mean(of_arm.values_ms);
  const auto base_mean = stats::mean(of_base.values_ms);
  if (!arm_mean || !base_mean) return std::nullopt;
  const double log_ratio = std::log(*arm_mean / *base_mean);
  if (!std::isfinite(log_ratio)) return std::nullopt;
  const auto arm_moments = stats::moments(of_arm.values_ms);
  const auto base_moments = stats::moments(of_base.values_ms);
  std::optional<stats::LogRatio> welch;
  if (arm_moments && base_moments) {
    stats::StratumMoments moments{.numerator = *arm_moments, .denominator = *base_moments};
    moments.apart =
        of_arm.range_ms.high < of_base.range_ms.low || of_base.range_ms.high < of_arm.range_ms.low;
    welch = stats::combined_log_ratio({&moments, 1});
  }
  PairedRatio result;
  if (!welch) {  // one unit, or units without spread
    result.numbers = {0};
    result.values = {log_ratio};
    return result;
  }
  const auto add = [&](const ArmUnits& units, double mean, double sign, int64_t first) {
    for (size_t u = 0; u < units.numbers.size(); ++u) {
      result.numbers.push_back(first + units.numbers[u]);
      result.values.push_back(sign * (units.values_ms[u] - mean) / mean /
                              static_cast<double>(units.numbers.size()));
    }
  };
  constexpr int64_t kOfBase = int64_t{1} << 40;  // so that a unit of either arm has its own number
  add(of_arm, *arm_mean, 1, 0);
  add(of_base, *base_mean, -1, kOfBase);
  const auto count = static_cast<double>(result.values.size());
  const double sd = *stats::standard_deviation(result.values);
  for (double& value : result.values) {
    value = log_ratio + value / sd * welch->error.value * std::sqrt(count);
  }
  result.freedom = welch->error.df / (count - 1);
  return result;
}

}  // namespace

std::optional<PairedRatio> arms_ratio(const RegimeCell& arm, const RegimeCell& base) {
  if (!base.paired) return ratio_of_apart(arm, base);
  std::vector<PairedProcess> processes = pair_up(base.rows, arm.rows);
  if (!base.by_rounds) processes = split_pairs(processes);
  return paired_ratio(processes, ProcessFigure::kMean);
}

std::optional<PairedRatio> arms_ratio_of_round(const RegimeCell& arm, const RegimeCell& base,
                                               int64_t round) {
  if (!base.paired) return std::nullopt;
  std::vector<PairedProcess> rounds = pair_up(base.rows, arm.rows);
  std::erase_if(rounds, [&](const PairedProcess& one) { return one.number != round; });
  return paired_ratio(split_pairs(rounds), ProcessFigure::kMean);
}

std::vector<double> log_ratios_of_rounds(const RegimeCell& arm, const RegimeCell& base) {
  std::vector<double> ratios;
  if (!base.paired || !base.by_rounds) return ratios;
  for (const PairedProcess& round : pair_up(base.rows, arm.rows)) {
    const double ratio =
        std::log(*stats::mean(round.cand_ms)) - std::log(*stats::mean(round.base_ms));
    if (std::isfinite(ratio)) ratios.push_back(ratio);
  }
  return ratios;
}

ShownRatio LogRatioEstimate::shown(double confidence) const {
  return {std::exp(log_ratio), ratio_interval_of(*this, confidence), range.has_value(), range};
}

std::optional<stats::Interval> range_of_few(const RegimeCell& arm, const RegimeCell& base) {
  if (!arm.by_rounds || !base.by_rounds) return std::nullopt;
  std::vector<double> of_arm;
  std::vector<double> of_base;
  if (base.paired) {
    for (const PairedProcess& round : pair_up(base.rows, arm.rows)) {
      of_arm.push_back(*stats::mean(round.cand_ms));
      of_base.push_back(*stats::mean(round.base_ms));
    }
  } else {
    of_arm = units_of(arm).values_ms;
    of_base = units_of(base).values_ms;
  }
  if (!are_few_processes(std::ssize(of_arm), std::ssize(of_base))) return std::nullopt;
  return ratio_range(of_arm, of_base, base.paired);
}

std::optional<stats::Interval> mean_range(std::span<const stats::Interval> ranges) {
  if (ranges.empty()) return std::nullopt;
  double low = 0;
  double high = 0;
  for (const stats::Interval& range : ranges) {
    low += std::log(range.low) / static_cast<double>(ranges.size());
    high += std::log(range.high) / static_cast<double>(ranges.size());
  }
  return stats::exp_of({low, high});
}

LogRatioEstimate regimes_ratio(const CellMean& a, const CellMean& b) {
  LogRatioEstimate estimate{std::log(b.mean_ms / a.mean_ms), {}};
  if (a.processes > 0 && b.processes > 0 && are_few_processes(a.processes, b.processes)) {
    estimate.range = stats::Interval{b.process_means_ms.low / a.process_means_ms.high,
                                     b.process_means_ms.high / a.process_means_ms.low};
  }
  if (!a.error || !b.error) return estimate;
  const bool apart = a.highest_ms < b.lowest_ms || b.highest_ms < a.lowest_ms;
  const stats::MeanError of_a{a.mean_ms, std::sqrt(a.error->square)};
  const stats::MeanError of_b{b.mean_ms, std::sqrt(b.error->square)};
  const double scale_a = stats::log_scale(of_a, of_b, apart);
  const double scale_b = stats::log_scale(of_b, of_a, apart);
  const double square_a = a.error->square / (scale_a * scale_a);
  const double square_b = b.error->square / (scale_b * scale_b);
  const double square = square_a + square_b;
  if (!(square > 0) || !std::isfinite(square)) return estimate;
  // Degrees of freedom by Satterthwaite (1946).
  const double df =
      square * square / (square_a * square_a / a.error->df + square_b * square_b / b.error->df);
  estimate.error = stats::StandardError{std::sqrt(square), std::max(df, 1.0)};
  return estimate;
}

std::optional<stats::Interval> ratio_interval_of(const LogRatioEstimate& of, double confidence) {
  if (!of.error || of.range) return std::nullopt;
  return stats::t_interval_of_ratio(of.log_ratio, *of.error, confidence);
}

}  // namespace assay
