// Pairs of repetitions, and the ratio that they show.
#include "analysis/compare/pairs.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "analysis/compare/parts.h"
#include "stats/summary.h"

namespace assay {
namespace {

double sum(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

std::optional<PairedRatio> ratio_of_means(std::span<const PairedProcess> processes) {
  double base = 0;
  double cand = 0;
  for (const PairedProcess& process : processes) {
    base += sum(process.base_ms);
    cand += sum(process.cand_ms);
  }
  const double ratio = cand / base;
  if (!(std::isfinite(ratio) && ratio > 0)) return std::nullopt;
  PairedRatio result;
  for (const PairedProcess& process : processes) {
    const double beyond = sum(process.cand_ms) - ratio * sum(process.base_ms);
    result.numbers.push_back(process.number);
    result.values.push_back(std::log(ratio) +
                            static_cast<double>(processes.size()) * beyond / cand);
  }
  return result;
}

std::optional<PairedRatio> typical_ratio(std::span<const PairedProcess> processes) {
  PairedRatio result;
  for (const PairedProcess& process : processes) {
    std::vector<double> ratios;
    for (size_t i = 0; i < process.base_ms.size(); ++i) {
      ratios.push_back(std::log(process.cand_ms[i] / process.base_ms[i]));
    }
    const auto median = stats::quantile_in_place(ratios, 0.5);
    if (!median || !std::isfinite(*median)) return std::nullopt;
    result.numbers.push_back(process.number);
    result.values.push_back(*median);
  }
  if (result.values.size() >= kFewestToCut) {
    auto [values, freedom] = stats::trimmed_series(result.values, kCutProcesses);
    result.values = std::move(values);
    result.freedom = freedom;
  }
  return result;
}

}  // namespace

std::vector<PairedProcess> split_pairs(const std::vector<PairedProcess>& processes) {
  std::vector<PairedProcess> pairs;
  for (const PairedProcess& process : processes) {
    for (size_t i = 0; i < process.base_ms.size(); ++i) {
      pairs.push_back(
          {static_cast<int64_t>(pairs.size()), {process.base_ms[i]}, {process.cand_ms[i]}});
    }
  }
  return pairs;
}

double PairedRatio::log_ratio() const {
  return sum(values) / static_cast<double>(values.size());
}

std::optional<stats::StandardError> PairedRatio::error() const {
  const auto sd = stats::standard_deviation(values);
  if (!sd || !(*sd > 0)) return std::nullopt;
  const auto count = static_cast<double>(values.size());
  return stats::StandardError{*sd / std::sqrt(count), std::max(1.0, (count - 1) * freedom)};
}

std::optional<PairedRatio> paired_ratio(std::span<const PairedProcess> processes,
                                        ProcessFigure figure) {
  if (processes.empty()) return std::nullopt;
  return figure == ProcessFigure::kMean ? ratio_of_means(processes) : typical_ratio(processes);
}

PairedRatio combine_ratios(std::span<const PairedRatio> cells) {
  double log_ratio = 0;
  std::map<int64_t, double> by_number;  // what each adds to the mean
  PairedRatio combined;
  const auto count = static_cast<double>(cells.size());
  for (const PairedRatio& cell : cells) {
    log_ratio += cell.log_ratio() / count;
    combined.freedom = std::min(combined.freedom, cell.freedom);
    for (size_t i = 0; i < cell.values.size(); ++i) {
      by_number[cell.numbers[i]] +=
          (cell.values[i] - cell.log_ratio()) / (count * static_cast<double>(cell.values.size()));
    }
  }
  for (const auto& [number, adds] : by_number) {
    combined.numbers.push_back(number);
    combined.values.push_back(log_ratio + static_cast<double>(by_number.size()) * adds);
  }
  return combined;
}

}  // namespace assay
