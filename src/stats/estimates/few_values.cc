// Cumulants of an estimate on the scale of logarithms, and the intervals that they make.
#include "stats/estimates/few_values.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "stats/distributions/distributions.h"
#include "stats/samples/summary.h"

namespace assay::stats {
namespace {

// Estimate and cumulants of a sum of weighted logarithms of means.
class LogEstimate {
 public:
  void add(const ResampledMean& sample, double weight) {
    const auto n = static_cast<double>(sample.n);
    const double scale = weight * sample.scale / sample.mean;  // of an influence value over n
    const double plug_in = sample.influence2 * scale * scale;
    const double variance = plug_in * n / (n - 1);
    value_ += weight * std::log(sample.mean);
    plug_in_ += plug_in;
    variance_ += variance;
    squares_ += variance * variance / (n - 1);
    if (sample.n > 2) {
      third_ += sample.influence3 * scale * scale * scale * (n * n / ((n - 1) * (n - 2)));
    }
    // Part of t's third cumulant that comes of the scale: the logarithm's curvature and its
    // error's.
    third_ -= 1.5 * variance * variance / weight;
  }

  // Terms of the same units: u_i = sum of weight (x_i - mean) / mean is unit i's share, times n.
  // False where they can't be had.
  bool add(std::span<const LogTerm> terms) {
    if (terms.empty() || terms[0].values.size() < 2) return false;
    const size_t units = terms[0].values.size();
    std::vector<double> means;
    std::vector<double> adds(units, 0.0);
    for (const LogTerm& term : terms) {
      const auto center = mean(term.values);
      if (term.values.size() != units || !center || !(*center > 0)) return false;
      means.push_back(*center);
      value_ += term.weight * std::log(*center);
      for (size_t i = 0; i < units; ++i) {
        adds[i] += term.weight * (term.values[i] - *center) / *center;
      }
    }
    const auto n = static_cast<double>(units);
    double squares = 0;
    double cubes = 0;
    for (const double u : adds) {
      squares += u * u / (n * n);
      cubes += u * u * u / (n * n * n);
    }
    const double variance = squares * n / (n - 1);
    plug_in_ += squares;
    variance_ += variance;
    squares_ += variance * variance / (n - 1);
    if (units > 2) third_ += cubes * (n * n / ((n - 1) * (n - 2)));
    // The same part: with c the covariance of the estimate and a term's mean, 1.5 weight c^2 each.
    for (size_t t = 0; t < terms.size(); ++t) {
      double c = 0;
      for (size_t i = 0; i < units; ++i) c += adds[i] * (terms[t].values[i] / means[t] - 1);
      c /= n * (n - 1);
      third_ -= 1.5 * terms[t].weight * c * c;
    }
    return true;
  }

  bool is_constant() const { return variance_ == 0; }
  bool varies() const { return variance_ > 0 && squares_ > 0 && std::isfinite(variance_); }
  double df() const { return variance_ * variance_ / squares_; }
  // Ratio of the error to that which a bootstrap takes for it.
  double correction() const { return std::sqrt(variance_ / plug_in_); }

  Interval transformed_t(double t) const {
    const double error = std::sqrt(variance_);
    return {std::exp(value_ - error * untransformed(t)),
            std::exp(value_ - error * untransformed(-t))};
  }

 private:
  // The inverse of Hall's t + g/3 t^2 + g^2/27 t^3 + g/6, g the estimate's skewness.
  double untransformed(double t) const {
    const double g = third_ / std::pow(variance_, 1.5);
    return std::abs(g) < 1e-6 ? t : 3 / g * (std::cbrt(1 + g * (t - g / 6)) - 1);
  }

  double value_ = 0;
  double plug_in_ = 0;
  double variance_ = 0;
  double squares_ = 0;  // sum of term^2 / degrees of freedom
  double third_ = 0;    // cumulant
};

std::optional<Interval> calibrated(const std::optional<Interval>& own, double estimate,
                                   const LogEstimate& logs, double confidence) {
  if (own && logs.is_constant()) return own;  // a point: there is nothing to calibrate
  if (!own || !logs.varies()) return std::nullopt;
  const double level = 1 - (1 - confidence) / 2;
  const auto t = student_t_quantile(level, logs.df());
  const auto z = normal_quantile(level);
  if (!t || !z) return std::nullopt;
  const Interval wide = stretched(*own, estimate, logs.correction() * *t / *z);
  const Interval skewed = logs.transformed_t(*t);
  return Interval{std::min(wide.low, skewed.low), std::max(wide.high, skewed.high)};
}

}  // namespace

double expansion(double n, double df, double confidence) {
  const double level = 1 - (1 - confidence) / 2;
  const auto t = student_t_quantile(level, df);
  const auto z = normal_quantile(level);
  return t && z ? std::sqrt(n / (n - 1)) * *t / *z : 1;
}

std::optional<Interval> calibrated_mean_interval(const ResampledMean& sample,
                                                 BootstrapOptions options) {
  if (!(sample.mean > 0)) return std::nullopt;
  options.method = BootstrapMethod::kBca;
  LogEstimate logs;
  logs.add(sample, 1);
  return calibrated(mean_interval(sample, options), sample.mean, logs, options.confidence);
}

std::optional<Interval> calibrated_ratio_interval(std::span<const RatioPair> pairs,
                                                  BootstrapOptions options) {
  options.method = BootstrapMethod::kPercentile;
  const auto own = ratio_interval(pairs, options);
  if (!own) return std::nullopt;
  const double weight = 1 / static_cast<double>(pairs.size());
  LogEstimate logs;
  double log_ratio = 0;
  for (const RatioPair& pair : pairs) {
    logs.add(*pair.numerator, weight);
    logs.add(*pair.denominator, -weight);
    log_ratio += weight * std::log(pair.numerator->mean / pair.denominator->mean);
  }
  return calibrated(own, std::exp(log_ratio), logs, options.confidence);
}

std::optional<Interval> calibrated_ratio_interval(std::span<const RatioPair> pairs,
                                                  std::span<const std::vector<LogTerm>> independent,
                                                  BootstrapOptions options) {
  options.method = BootstrapMethod::kPercentile;
  const auto own = ratio_interval(pairs, options);
  if (!own) return std::nullopt;
  LogEstimate logs;
  for (const std::vector<LogTerm>& together : independent) {
    if (!logs.add(together)) return std::nullopt;
  }
  double log_ratio = 0;
  for (const RatioPair& pair : pairs) {
    log_ratio +=
        std::log(pair.numerator->mean / pair.denominator->mean) / static_cast<double>(pairs.size());
  }
  return calibrated(own, std::exp(log_ratio), logs, options.confidence);
}

}  // namespace assay::stats
