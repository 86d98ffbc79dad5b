// Autocorrelation judged by families of series.
#include "analysis/dependence.h"

#include <algorithm>
#include <cmath>

#include "stats/distributions.h"
#include "stats/multiple.h"
#include "stats/series.h"
#include "stats/summary.h"

namespace assay {
namespace {

constexpr double kLevel = 0.025;
constexpr double kMostAlike = 0.97;
constexpr size_t kLongSeries = 100;  // from here on r_k beyond the first can be told from noise

// What a family's lag-1 autocorrelations say together.
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

// The r of each that counts.
std::vector<double> counted(std::span<const stats::Lag1> family) {
  const FamilyR together = pool(family);
  std::vector<double> r(family.size());
  if (above_zero(together.mean, together.error)) {
    for (size_t i = 0; i < family.size(); ++i) {
      const double own = family[i].error * family[i].error;
      const double trust = together.between / (together.between + own);
      r[i] = together.mean + trust * (family[i].r - together.mean);
    }
  } else {
    std::vector<double> p;
    for (const stats::Lag1& one : family) p.push_back(stats::normal_upper(one.r / one.error).p);
    const std::vector<double> holm = stats::holm(p);
    for (size_t i = 0; i < family.size(); ++i) r[i] = holm[i] < kLevel ? family[i].r : 0;
  }
  for (double& one : r) one = std::clamp(one, 0.0, kMostAlike);
  return r;
}

Dependence dependence_of(std::span<const double> series, double r) {
  const auto n = static_cast<double>(series.size());
  Dependence result{r, n, 1};
  if (r <= 0) return result;
  result.n_effective = n * (1 - r) / (1 + r);
  if (series.size() >= kLongSeries) {
    if (const auto whole = stats::effective_sample_size(series)) {
      result.n_effective = std::min(result.n_effective, whole->size);
    }
  }
  result.n_effective = std::clamp(result.n_effective, 2.0, n);
  result.widening = std::sqrt(n / result.n_effective);
  return result;
}

// x / mean - y / mean', of rows of the same repetition that compiled nothing.
std::vector<double> difference_series(const Group& arm, const Group& base) {
  std::vector<double> series;
  const auto mean = stats::mean(arm.warm_ms);
  const auto base_mean = stats::mean(base.warm_ms);
  if (&arm == &base || !mean || !base_mean || !(*mean > 0) || !(*base_mean > 0)) return series;
  size_t i = 0;
  size_t j = 0;
  while (i < arm.warm.size() && j < base.warm.size()) {
    const int64_t left = arm.warm[i]->repetition;
    const int64_t right = base.warm[j]->repetition;
    if (left == right) {
      if (!carries_compilation(*arm.warm[i]) && !carries_compilation(*base.warm[j])) {
        series.push_back(arm.warm_ms[i] / *mean - base.warm_ms[j] / *base_mean);
      }
      ++i;
      ++j;
    } else {
      ++(left < right ? i : j);
    }
  }
  return series;
}

// dependences() of each phase's series, put back in the order given. `phase_of(i)`.
template <typename PhaseOf>
std::vector<Dependence> by_phase(std::vector<std::vector<double>>& all, const PhaseOf& phase_of) {
  std::vector<Dependence> result(all.size());
  for (const Phase phase : kPhases) {
    std::vector<size_t> members;
    std::vector<std::vector<double>> family;
    for (size_t i = 0; i < all.size(); ++i) {
      if (phase_of(i) != phase) continue;
      members.push_back(i);
      family.push_back(std::move(all[i]));
    }
    const std::vector<Dependence> found = dependences(family);
    for (size_t m = 0; m < members.size(); ++m) result[members[m]] = found[m];
  }
  return result;
}

}  // namespace

std::vector<Dependence> dependences(std::span<const std::vector<double>> family) {
  std::vector<Dependence> result;
  std::vector<stats::Lag1> lags;
  std::vector<size_t> members;
  for (size_t i = 0; i < family.size(); ++i) {
    result.push_back(dependence_of(family[i], 0));
    if (const auto lag = stats::lag1_autocorrelation(family[i])) {
      lags.push_back(*lag);
      members.push_back(i);
    }
  }
  if (lags.empty()) return result;
  const std::vector<double> r = counted(lags);
  for (size_t m = 0; m < members.size(); ++m) {
    result[members[m]] = dependence_of(family[members[m]], r[m]);
  }
  return result;
}

std::vector<double> contrast_widenings(const Samples& samples, std::span<const GroupPair> pairs) {
  std::vector<std::vector<double>> series;
  for (const GroupPair& pair : pairs) {
    series.push_back(difference_series(samples.groups[pair.arm], samples.groups[pair.baseline]));
  }
  std::vector<double> widenings;
  const auto phase_of = [&](size_t i) {
    return samples.strata[samples.groups[pairs[i].arm].stratum].phase;
  };
  for (const Dependence& one : by_phase(series, phase_of)) widenings.push_back(one.widening);
  return widenings;
}

std::vector<GroupDependence> group_dependences(const Samples& samples) {
  std::vector<std::vector<double>> series(samples.groups.size());
  std::vector<GroupPair> pairs;
  for (size_t g = 0; g < samples.groups.size(); ++g) {
    const Group& group = samples.groups[g];
    for (size_t i = 0; i < group.warm.size(); ++i) {
      if (!carries_compilation(*group.warm[i])) series[g].push_back(group.warm_ms[i]);
    }
    const Group* base = samples.find(group.stratum, 0);
    pairs.push_back({g, base ? static_cast<size_t>(base - samples.groups.data()) : g});
  }
  const auto phase_of = [&](size_t g) { return samples.strata[samples.groups[g].stratum].phase; };
  const std::vector<Dependence> own = by_phase(series, phase_of);
  const std::vector<double> to_baseline = contrast_widenings(samples, pairs);
  std::vector<GroupDependence> result;
  for (size_t g = 0; g < own.size(); ++g) result.push_back({own[g], to_baseline[g]});
  return result;
}

}  // namespace assay
