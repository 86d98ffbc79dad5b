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

bool above_zero(double estimate, double error, double level) {
  return stats::normal_upper(estimate / error).p < level;
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

Counted counted(std::span<const stats::Lag1> family, double level) {
  const FamilyR together = pool(family);
  Counted result{std::vector<CountedR>(family.size()), {}};
  if (above_zero(together.mean, together.error, level)) {
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
      if (holm[i] < level) result.of_series[i] = {family[i].r, family[i].error};
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

// The r for which n values tell as much of their mean as `size` independent ones, where n is large:
// size = n (1 - r) / (1 + r). 0 where size is n; size is 2 or more.
double r_of_size(size_t n, double size) {
  const double inflation = static_cast<double>(n) / std::max(size, 2.0);
  return std::max(0.0, (inflation - 1) / (inflation + 1));
}

// The r that counts of each series, by its own lag-1 autocorrelation; absent: it has none.
std::vector<CountedR> counted_of(const std::vector<std::optional<stats::Lag1>>& lags,
                                 double level) {
  std::vector<stats::Lag1> known;
  for (const auto& lag : lags) {
    if (lag) known.push_back(*lag);
  }
  const Counted found = known.empty() ? Counted{} : counted(known, level);
  std::vector<CountedR> all;
  size_t next = 0;
  for (const auto& lag : lags) all.push_back(lag ? found.of_series[next++] : found.of_family);
  return all;
}

// Mean over parts by precision; absent where none has one.
std::optional<stats::Lag1> lag_of_parts(const SeriesInParts& parts) {
  double weights = 0;
  double sum = 0;
  for (const std::vector<double>& part : parts) {
    const auto lag = stats::lag1_autocorrelation(part);
    if (!lag) continue;
    weights += 1 / (lag->error * lag->error);
    sum += lag->r / (lag->error * lag->error);
  }
  if (!(weights > 0)) return std::nullopt;
  return stats::Lag1{sum / weights, 1 / std::sqrt(weights)};
}

bool does_vary(std::span<const double> series) {
  return std::ranges::adjacent_find(series, std::not_equal_to()) != series.end();
}

Dependence dependence_of(std::span<const double> series, const CountedR& counts, double errors) {
  const auto n = static_cast<int64_t>(series.size());
  if (!(counts.r > 0) || n < 2) return {};
  const double r = counted_r(series, counts.r + errors * counts.error);
  return {r, counts.error, stats::first_order(n, r).inflation,
          stats::first_order_widening(n, r, counts.error)};
}

}  // namespace

double counted_r(std::span<const double> series, double r) {
  const double counts = std::clamp(r, 0.0, stats::kMostAlike);
  if (series.size() < kLongSeries) return counts;
  const auto size = geyer_size(series);
  return size ? std::max(counts, r_of_size(series.size(), *size)) : counts;
}

std::vector<Dependence> dependences(std::span<const std::vector<double>> family,
                                    const DependenceRule& rule) {
  std::vector<std::optional<stats::Lag1>> lags;
  for (const auto& series : family) lags.push_back(stats::lag1_autocorrelation(series));
  const std::vector<CountedR> counts = counted_of(lags, rule.level);
  std::vector<Dependence> result;
  for (size_t i = 0; i < family.size(); ++i) {
    result.push_back(
        dependence_of(family[i], does_vary(family[i]) ? counts[i] : CountedR{}, rule.errors));
  }
  return result;
}

std::vector<double> inflations_within_parts(std::span<const SeriesInParts> family) {
  std::vector<std::optional<stats::Lag1>> lags;
  for (const SeriesInParts& parts : family) lags.push_back(lag_of_parts(parts));
  const std::vector<CountedR> counts = counted_of(lags, DependenceRule().level);
  std::vector<double> result;
  for (size_t i = 0; i < family.size(); ++i) {
    double n = 0;
    double independent = 0;
    for (const std::vector<double>& part : family[i]) {
      const auto size = static_cast<double>(part.size());
      const CountedR counted = does_vary(part) ? counts[i] : CountedR{};
      n += size;
      independent += size / dependence_of(part, counted, 0).inflation;
    }
    result.push_back(independent > 0 ? n / independent : 1);
  }
  return result;
}

}  // namespace assay
