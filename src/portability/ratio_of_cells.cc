// Ratios of two cells.
#include "portability/ratio_of_cells.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "stats/ratio.h"
#include "stats/summary.h"

namespace assay {
namespace {

// Repetitions that both have a warm row of, by round.
std::vector<PairedProcess> paired_rows(const RegimeCell& arm, const RegimeCell& base,
                                       std::optional<int64_t> only) {
  std::map<int64_t, double> arm_ms;
  for (const MeasuredRow& row : arm.rows) arm_ms[row.repetition] = row.ms;
  std::map<int64_t, PairedProcess> by_round;
  for (const MeasuredRow& row : base.rows) {
    const int64_t round = base.by_rounds ? row.round : 0;
    if (only && round != *only) continue;
    const auto other = arm_ms.find(row.repetition);
    if (other == arm_ms.end()) continue;
    PairedProcess& process = by_round[round];
    process.number = round;
    process.base_ms.push_back(row.ms);
    process.cand_ms.push_back(other->second);
  }
  std::vector<PairedProcess> processes;
  for (auto& [round, process] : by_round) processes.push_back(std::move(process));
  return processes;
}

}  // namespace

std::optional<PairedRatio> arms_ratio(const RegimeCell& arm, const RegimeCell& base) {
  std::vector<PairedProcess> processes = paired_rows(arm, base, {});
  if (!base.by_rounds) processes = split_pairs(processes);
  return paired_ratio(processes, ProcessFigure::kMean);
}

std::optional<PairedRatio> arms_ratio_of_round(const RegimeCell& arm, const RegimeCell& base,
                                               int64_t round) {
  return paired_ratio(split_pairs(paired_rows(arm, base, round)), ProcessFigure::kMean);
}

std::vector<double> log_ratios_of_rounds(const RegimeCell& arm, const RegimeCell& base) {
  std::vector<double> ratios;
  for (const PairedProcess& round : paired_rows(arm, base, {})) {
    const double ratio =
        std::log(*stats::mean(round.cand_ms)) - std::log(*stats::mean(round.base_ms));
    if (std::isfinite(ratio)) ratios.push_back(ratio);
  }
  return ratios;
}

LogRatioEstimate regimes_ratio(const CellMean& a, const CellMean& b) {
  LogRatioEstimate estimate{std::log(b.mean_ms / a.mean_ms), {}};
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
  if (!of.error) return std::nullopt;
  const auto interval = stats::t_interval(of.log_ratio, *of.error, confidence);
  if (!interval) return std::nullopt;
  return stats::Interval{std::exp(interval->low), std::exp(interval->high)};
}

}  // namespace assay
