// Pairs of repetitions, and the ratio that they show.
#include "analysis/compare/pairs.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "analysis/compare/parts.h"
#include "stats/estimates/ratio.h"
#include "stats/samples/summary.h"

namespace assay {
namespace {

double sum(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

// One side's mean call, and for each process the sum of its calls less so many times that mean.
struct MeanOfSide {
  double mean = 0;
  double calls = 0;
  std::vector<double> beyond;
};

MeanOfSide mean_of(std::span<const PairedProcess> processes,
                   std::vector<double> PairedProcess::*side) {
  MeanOfSide result;
  for (const PairedProcess& process : processes) {
    result.calls += static_cast<double>((process.*side).size());
    result.mean += sum(process.*side);
  }
  result.mean /= result.calls;
  for (const PairedProcess& process : processes) {
    const auto own = static_cast<double>((process.*side).size());
    result.beyond.push_back(sum(process.*side) - own * result.mean);
  }
  return result;
}

// Error of a ratio estimate with clusters, as a share of the ratio.
double ratio_error(const MeanOfSide& base, const MeanOfSide& cand) {
  const auto count = static_cast<double>(base.beyond.size());
  if (count < 2) return 0;
  double squares = 0;
  for (size_t i = 0; i < base.beyond.size(); ++i) {
    const double beyond = cand.beyond[i] - cand.mean / base.mean * base.beyond[i];
    squares += beyond * beyond;
  }
  return std::sqrt(count / (count - 1) * squares) / (cand.calls * cand.mean);
}

// True if the same side takes longer in every pair.
bool on_one_side(std::span<const PairedProcess> processes) {
  bool longer = false;
  bool shorter = false;
  for (const PairedProcess& process : processes) {
    for (size_t i = 0; i < process.base_ms.size(); ++i) {
      longer = longer || process.cand_ms[i] >= process.base_ms[i];
      shorter = shorter || process.cand_ms[i] <= process.base_ms[i];
    }
  }
  return longer != shorter;
}

std::optional<PairedRatio> ratio_of_means(std::span<const PairedProcess> processes) {
  const MeanOfSide base = mean_of(processes, &PairedProcess::base_ms);
  const MeanOfSide cand = mean_of(processes, &PairedProcess::cand_ms);
  const double ratio = cand.mean / base.mean;
  if (!(std::isfinite(ratio) && ratio > 0)) return std::nullopt;
  // The sides' common part has cancelled in this error: it says how well either is known beside the
  // other.
  const double error = ratio_error(base, cand);
  const stats::MeanError cand_mean{cand.mean, error * cand.mean};
  const stats::MeanError base_mean{base.mean, error * base.mean};
  const bool one_sided = on_one_side(processes);
  const double of_cand = stats::log_scale(cand_mean, base_mean, one_sided);
  const double of_base = stats::log_scale(base_mean, cand_mean, one_sided);
  const double share = static_cast<double>(processes.size()) / cand.calls;
  PairedRatio result;
  for (size_t i = 0; i < processes.size(); ++i) {
    result.numbers.push_back(processes[i].number);
    result.values.push_back(std::log(ratio) +
                            share * (cand.beyond[i] / of_cand - base.beyond[i] / of_base));
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
  std::map<int64_t, double> by_number;  // each one's share in the mean
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
