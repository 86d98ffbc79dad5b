// Medians of pairs.
#include "analysis/contrast/typical.h"

#include <algorithm>
#include <cmath>

#include "analysis/contrast/process_range.h"
#include "stats/samples/summary.h"

namespace assay {
namespace {

// ln of the ratios of a round's repetitions.
std::vector<double> log_ratios(const PairedProcess& round) {
  std::vector<double> logs;
  for (size_t i = 0; i < round.base_ms.size(); ++i) {
    logs.push_back(std::log(round.cand_ms[i] / round.base_ms[i]));
  }
  return logs;
}

std::vector<double> median_log_ratios(const std::vector<PairedProcess>& rounds) {
  std::vector<double> medians;
  for (const PairedProcess& round : rounds) {
    medians.push_back(*stats::median(stats::sorted(log_ratios(round))));
  }
  return medians;
}

// Number of values that may lie below the interval of a median of n: the largest k for which
// P(Binomial(n, 1/2) < k) is at most (1 - confidence) / 2. 0: even the extremes are too near.
int64_t median_rank(int64_t n, double confidence) {
  double below = 0;
  double log_term = -static_cast<double>(n) * std::log(2.0);
  for (int64_t k = 0; k < n; ++k) {
    below += std::exp(log_term);
    if (below > (1 - confidence) / 2) return k;
    log_term += std::log(static_cast<double>(n - k) / static_cast<double>(k + 1));
  }
  return 0;
}

std::optional<SpreadRatio> of_repetitions(std::vector<double> logs, double widening,
                                          double confidence) {
  std::ranges::sort(logs);
  const auto n = static_cast<int64_t>(logs.size());
  const int64_t rank = median_rank(n, confidence);
  if (rank < 1) return std::nullopt;
  const double half_width = (static_cast<double>(n + 1) / 2 - static_cast<double>(rank)) * widening;
  const auto low = static_cast<int64_t>(std::floor(static_cast<double>(n + 1) / 2 - half_width));
  if (low < 1) return std::nullopt;
  return SpreadRatio{std::exp(*stats::median(logs)),
                     stats::Interval{std::exp(logs[static_cast<size_t>(low - 1)]),
                                     std::exp(logs[static_cast<size_t>(n - low)])}};
}

std::optional<SpreadRatio> of_rounds(const std::vector<PairedProcess>& rounds,
                                     const stats::Widening& widening, double confidence) {
  const std::vector<double> medians = median_log_ratios(rounds);
  const auto moments = stats::moments(medians);
  if (!moments) return std::nullopt;
  if (moments->n < kLeastProcessesOfInterval) {
    const auto logs = range_of(medians);
    return SpreadRatio{std::exp(moments->mean), std::nullopt, stats::exp_of(*logs)};
  }
  const auto interval = stats::t_interval_of_ratio(
      moments->mean, stats::error_of_mean(*moments).widened(widening), confidence);
  if (!interval) return std::nullopt;
  return SpreadRatio{std::exp(moments->mean), interval};
}

}  // namespace

std::optional<SpreadRatio> typical_ratio(const ContrastInputs& in, const GroupPair& pair,
                                         const stats::Widening& widening, double confidence) {
  const Group& arm = in.samples.groups[pair.arm];
  if (!in.units.paired(arm.stratum)) return std::nullopt;
  const auto rounds = pair_up(in.samples, in.units, in.samples.groups[pair.baseline], arm);
  if (rounds.empty()) return std::nullopt;
  if (in.units.of(arm.stratum) == ContrastUnit::kProcesses) {
    return of_rounds(rounds, widening, confidence);
  }
  return of_repetitions(log_ratios(rounds[0]), widening.error, confidence);
}

stats::TrimmedSeries cut_series(std::vector<double> values) {
  constexpr size_t kFewest = 10;
  if (values.size() < kFewest) return {std::move(values), 1};
  return stats::trimmed_series(values, 0.2);
}

Estimate typical_estimate(const std::vector<PairedProcess>& rounds, bool by_processes) {
  Estimate of{.unit = by_processes ? ContrastUnit::kProcesses : ContrastUnit::kRepetitions,
              .paired = true};
  std::vector<double> values = by_processes ? median_log_ratios(rounds) : log_ratios(rounds[0]);
  if (by_processes && std::ssize(values) < kLeastProcessesOfInterval) {
    of.too_few = true;
    if (const auto logs = range_of(values)) of.range = stats::exp_of(*logs);
  }
  auto [kept, freedom] = cut_series(std::move(values));
  values = std::move(kept);
  of.widening.df = freedom;
  of.log_ratio = stats::mean(values).value_or(0);
  if (values.empty() || !std::isfinite(of.log_ratio)) {
    of.why_absent = "its times have no ratio";
    return of;
  }
  const auto moments = stats::moments(values);
  if (moments && moments->variance > 0) {
    of.error = stats::error_of_mean(*moments).widened(of.widening);
  }
  UnitShares shares;
  for (size_t i = 0; i < values.size(); ++i) {
    shares.keys.push_back(by_processes ? rounds[i].number : static_cast<int64_t>(i));
    shares.values.push_back(values[i] - of.log_ratio);
  }
  of.shares = {std::move(shares)};
  return of;
}

}  // namespace assay
