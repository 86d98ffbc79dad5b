// Smyth's moments of logarithms, by a design effect.
#include "stats/estimates/shared_spread.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "stats/distributions/distributions.h"
#include "stats/samples/summary.h"

namespace assay::stats {
namespace {

constexpr double kStandsOut = 0.05;

struct OwnVariance {
  size_t sample = 0;
  double variance = 0;
  double df = 0;
};

double square_sum(std::span<const double> values) {
  return std::inner_product(values.begin(), values.end(), values.begin(), 0.0);
}

// y with trigamma(y) = x, by Newton's steps on 1 / trigamma, which is nearly straight (Smyth 2004,
// appendix).
double inverse_trigamma(double x) {
  if (x > 1e7) return 1 / std::sqrt(x);
  if (x < 1e-6) return 1 / x;
  double y = 0.5 + 1 / x;
  for (int step = 0; step < 50; ++step) {
    const double at = trigamma(y);
    const double change = at * (1 - at / x) / tetragamma(y);
    y += change;
    if (-change < 1e-8 * y) break;
  }
  return y;
}

// The variance that samples of one kind have in common, and the degrees of freedom that it is
// worth: the fewer, the more the own variances differ beyond chance; infinity where they don't.
struct Common {
  double variance = 0;
  double df = 0;
};

// `errors_more`: standard errors that the own variances may differ more than is seen.
Common common_of(std::span<const OwnVariance> own, double errors_more) {
  double weights = 0;
  double pooled = 0;
  std::vector<double> logs;
  double by_chance = 0;
  for (const OwnVariance& one : own) {
    weights += one.df;
    pooled += one.df * one.variance;
    logs.push_back(std::log(one.variance) - digamma(one.df / 2) + std::log(one.df / 2));
    by_chance += trigamma(one.df / 2) / static_cast<double>(own.size());
  }
  const double error = by_chance * std::sqrt(2 / static_cast<double>(own.size() - 1));
  const double spread = *variance(logs) - by_chance + errors_more * error;
  if (!(spread > 0)) return {pooled / weights, std::numeric_limits<double>::infinity()};
  const double df = 2 * inverse_trigamma(spread);
  return {std::exp(*mean(logs) + digamma(df / 2) - std::log(df / 2)), df};
}

// Few variances tell little of how much they differ, and a difference that isn't seen would make
// degrees of freedom that aren't there. With two values a sample, allowing for it would leave
// nothing to share.
Common cautious_common(std::span<const OwnVariance> own) {
  const bool any_pair = std::ranges::any_of(own, [](const OwnVariance& one) { return one.df < 2; });
  return common_of(own, any_pair ? 0 : 2);
}

// Degrees of freedom that all samples' variances together are worth.
double freedom_of(std::span<const KeyedDeviations> samples, std::span<const OwnVariance> own) {
  std::vector<KeyedDeviations> kept;
  double df = 0;
  for (const OwnVariance& one : own) {
    kept.push_back(samples[one.sample]);
    df += one.df;
  }
  const auto others = static_cast<double>(own.size() - 1);
  return df / (1 + others * shared_part(kept));
}

bool stands_out(const OwnVariance& own, const Common& common, double freedom) {
  const auto area = f_upper(own.variance / common.variance, own.df, std::min(common.df, freedom));
  return area && area->p < kStandsOut;
}

SharedVariance shared(const OwnVariance& own, const Common& common, double freedom) {
  const bool alike = std::isinf(common.df);
  const double together =
      alike ? common.variance
            : (common.df * common.variance + own.df * own.variance) / (common.df + own.df);
  return {std::max(together, own.variance),
          std::max(own.df, std::min(common.df + own.df, freedom))};
}

}  // namespace

double shared_part(std::span<const KeyedDeviations> samples) {
  std::map<int64_t, double> sums;  // of the samples' deviations, each of length 1
  double count = 0;
  double most = 0;
  for (const KeyedDeviations& sample : samples) {
    const double length = std::sqrt(square_sum(sample.values));
    if (!(length > 0)) continue;
    ++count;
    most = std::max(most, static_cast<double>(sample.values.size() - 1));
    for (size_t i = 0; i < sample.keys.size(); ++i)
      sums[sample.keys[i]] += sample.values[i] / length;
  }
  if (count < 2) return 0;
  double square = 0;
  for (const auto& [key, sum] : sums) square += sum * sum;
  const double pairs = count * (count - 1);
  const double correlation = std::max(0.0, (square - count) / pairs);
  return std::min(1.0, correlation + std::sqrt(2 / (pairs * most)));
}

std::vector<SharedVariance> share_variances(std::span<const KeyedDeviations> samples) {
  std::vector<SharedVariance> result(samples.size());
  std::vector<OwnVariance> own;
  for (size_t i = 0; i < samples.size(); ++i) {
    if (samples[i].values.size() < 2) continue;
    const auto df = static_cast<double>(samples[i].values.size() - 1);
    result[i] = {square_sum(samples[i].values) / df, df};
    if (std::isnormal(result[i].variance)) own.push_back({i, result[i].variance, df});
  }
  if (own.size() < 2) return result;
  std::vector<OwnVariance> kept = own;
  Common common = common_of(kept, 0);
  const double freedom_of_all = freedom_of(samples, kept);
  std::erase_if(kept,
                [&](const OwnVariance& one) { return stands_out(one, common, freedom_of_all); });
  if (kept.size() < 2) return result;
  common = common_of(kept, 0);
  const Common cautious = cautious_common(kept);
  const double freedom = freedom_of(samples, kept);
  bool any = false;
  for (const OwnVariance& one : own) {
    result[one.sample].stands_out = stands_out(one, common, freedom);
    any = any || result[one.sample].stands_out;
  }
  for (const OwnVariance& one : own) {
    const bool keeps = result[one.sample].stands_out || (any && one.df < 2);
    if (!keeps) result[one.sample] = shared(one, cautious, freedom);
  }
  return result;
}

}  // namespace assay::stats
