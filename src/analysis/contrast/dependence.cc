// Autocorrelation judged by families of series.
#include "analysis/contrast/dependence.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "stats/distributions/distributions.h"
#include "stats/hypotheses/multiple.h"
#include "stats/samples/series.h"
#include "stats/samples/summary.h"

namespace assay {
namespace {

constexpr double kLevel = 0.025;
constexpr size_t kBlocks = 500;

// Lag-1 autocorrelations of a family, pooled.
struct FamilyR {
  double mean = 0;
  double error = 0;    // of the mean
  double between = 0;  // variance of the series' true r around it (DerSimonian and Laird)
};

FamilyR pool(std::span<const stats::Lag1> family) {
  double weights = 0;
  double squares = 0;
  double sum = 0;
  for (const stats::Lag1& one : family) {
    const double weight = 1 / (one.error * one.error);
    weights += weight;
    squares += weight * weight;
    sum += weight * one.r;
  }
  FamilyR together{sum / weights, 1 / std::sqrt(weights), 0};
  double q = 0;
  for (const stats::Lag1& one : family) {
    const double z = (one.r - together.mean) / one.error;
    q += z * z;
  }
  const double spare = q - static_cast<double>(family.size() - 1);
  if (family.size() > 1) together.between = std::max(0.0, spare / (weights - squares / weights));
  return together;
}

bool above_zero(double estimate, double error) {
  return stats::normal_upper(estimate / error).p < kLevel;
}

// An r that counts, and its standard error.
struct CountedR {
  double r = 0;
  double error = 0;
};
struct Counted {
  std::vector<CountedR> of_series;
  CountedR of_family;  // of a series that can't be judged by itself; 0: the family shows none
};

Counted counted(std::span<const stats::Lag1> family) {
  const FamilyR together = pool(family);
  Counted result{std::vector<CountedR>(family.size()), {}};
  if (above_zero(together.mean, together.error)) {
    const double square = together.error * together.error;
    result.of_family = {together.mean, std::sqrt(together.between + square)};
    for (size_t i = 0; i < family.size(); ++i) {
      const double own = family[i].error * family[i].error;
      const double trust = together.between / (together.between + own);
      result.of_series[i] = {together.mean + trust * (family[i].r - together.mean),
                             std::sqrt(trust * own + (1 - trust) * (1 - trust) * square)};
    }
  } else {
    std::vector<double> p;
    for (const stats::Lag1& one : family) p.push_back(stats::normal_upper(one.r / one.error).p);
    const std::vector<double> holm = stats::holm(p);
    for (size_t i = 0; i < family.size(); ++i) {
      if (holm[i] < kLevel) result.of_series[i] = {family[i].r, family[i].error};
    }
  }
  return result;
}

// Geyer's effective size. His sum takes as many lags as stay positive, which for a series that goes
// one way is a third of it: a long one is first cut into blocks, whose means have the same mean.
std::optional<double> geyer_size(std::span<const double> series) {
  const size_t block = (series.size() + kBlocks - 1) / kBlocks;
  if (block < 2) {
    const auto whole = stats::effective_sample_size(series);
    return whole ? std::optional(whole->size) : std::nullopt;
  }
  std::vector<double> means;
  for (size_t at = 0; at + block <= series.size(); at += block) {
    means.push_back(*stats::mean(series.subspan(at, block)));
  }
  const auto blocks = stats::effective_sample_size(means);
  const auto between = stats::variance(means);
  const auto within = stats::variance(series);
  if (!blocks || !between || !within || !(*between > 0)) return std::nullopt;
  return *within / *between * blocks->size;
}

Dependence dependence_of(std::span<const double> series, const CountedR& counts) {
  const auto n = static_cast<int64_t>(series.size());
  if (!(counts.r > 0) || n < 2) return {};
  const double r = counted_r(series, counts.r);
  return {r, counts.error, stats::first_order(n, r).inflation,
          stats::first_order_widening(n, r, counts.error)};
}

}  // namespace

double r_of_size(size_t n, double size) {
  const double inflation = static_cast<double>(n) / std::max(size, 2.0);
  return std::max(0.0, (inflation - 1) / (inflation + 1));
}

double counted_r(std::span<const double> series, double r) {
  const double counts = std::clamp(r, 0.0, stats::kMostAlike);
  if (series.size() < kLongSeries) return counts;
  const auto size = geyer_size(series);
  return size ? std::max(counts, r_of_size(series.size(), *size)) : counts;
}

std::vector<Dependence> dependences(std::span<const std::vector<double>> family) {
  std::vector<stats::Lag1> lags;
  std::vector<size_t> members;
  for (size_t i = 0; i < family.size(); ++i) {
    if (const auto lag = stats::lag1_autocorrelation(family[i])) {
      lags.push_back(*lag);
      members.push_back(i);
    }
  }
  const Counted found = lags.empty() ? Counted{} : counted(lags);
  std::vector<Dependence> result;
  size_t next = 0;
  for (size_t i = 0; i < family.size(); ++i) {
    const std::vector<double>& series = family[i];
    const bool judged = next < members.size() && members[next] == i;
    const bool varies = std::ranges::adjacent_find(series, std::not_equal_to()) != series.end();
    const CountedR counts = judged   ? found.of_series[next++]
                            : varies ? found.of_family
                                     : CountedR{};
    result.push_back(dependence_of(series, counts));
  }
  return result;
}

}  // namespace assay
