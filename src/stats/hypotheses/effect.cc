// Effect sizes.
#include "stats/hypotheses/effect.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "stats/distributions/distributions.h"
#include "stats/distributions/root.h"
#include "stats/hypotheses/tests.h"
#include "stats/samples/ranks.h"

namespace assay::stats {
namespace {

// Placements of the values of one sample in the other: their ranks among both less those in their
// own. Mean and variance of them are all that Brunner and Munzel need.
std::optional<Moments> placements(std::span<const double> ranks_in_both,
                                  std::span<const double> sample) {
  std::vector<double> places = mid_ranks(sample);
  for (size_t i = 0; i < places.size(); ++i) places[i] = ranks_in_both[i] - places[i];
  return moments(places);
}

}  // namespace

std::optional<double> cohen_d(const Moments& a, const Moments& b) {
  if (a.n < 2 || b.n < 2) return std::nullopt;
  const auto freedom_a = static_cast<double>(a.n - 1);
  const auto freedom_b = static_cast<double>(b.n - 1);
  const double freedom = freedom_a + freedom_b;
  const double pooled = freedom_a / freedom * a.variance + freedom_b / freedom * b.variance;
  if (!(pooled > 0) || !std::isfinite(pooled)) return std::nullopt;
  return (a.mean - b.mean) / std::sqrt(pooled);
}

std::optional<double> hedges_correction(double m) {
  if (!(m > 1)) return std::nullopt;
  constexpr double kLarge = 200;
  if (m < kLarge) return std::exp(log_gamma(m / 2) - log_gamma((m - 1) / 2) - std::log(m / 2) / 2);
  // Differences of ln Gamma lose as many digits as they have before the point. The quotient's
  // asymptotic series (DLMF 5.11.14) in w = m/2 - 3/4: sqrt(w) (1 + 1/(64 w^2) - 19/(8192 w^4) +
  // ...)
  const double w = m / 2 - 0.75;
  const double w2 = w * w;
  return std::sqrt(1 - 1.5 / m) * (1 + 1 / (64 * w2) - 19 / (8192 * w2 * w2));
}

std::optional<double> hedges_g(const Moments& a, const Moments& b) {
  const auto d = cohen_d(a, b);
  if (!d) return std::nullopt;
  const auto j = hedges_correction(static_cast<double>(a.n) + static_cast<double>(b.n) - 2);
  return j ? std::optional(*d * *j) : std::nullopt;
}

std::optional<Interval> cohen_d_interval(double d, int64_t n_a, int64_t n_b, double confidence) {
  if (n_a < 1 || n_b < 1 || n_a + n_b < 3 || !std::isfinite(d)) return std::nullopt;
  const auto a = static_cast<double>(n_a);
  const auto b = static_cast<double>(n_b);
  const double root = std::sqrt(a / (a + b) * b);
  const double df = a + b - 2;
  const double t = d * root;
  const double tail = (1 - confidence) / 2;
  const auto z = normal_quantile(1 - tail);
  if (!z) return std::nullopt;
  const double width = *z * std::sqrt(1 + t * t / (2 * df));
  const auto low = rising_root(
      [&](double shift) -> std::optional<double> {
        const auto above = noncentral_t_upper(t, df, shift);
        return above ? std::optional(*above - tail) : std::nullopt;
      },
      t - 1.5 * width, t - width);
  const auto high = rising_root(
      [&](double shift) -> std::optional<double> {
        const auto below = noncentral_t_cdf(t, df, shift);
        return below ? std::optional(tail - *below) : std::nullopt;
      },
      t + width / 2, t + width);
  if (!low || !high) return std::nullopt;
  return Interval{*low / root, *high / root};
}

std::optional<Superiority> vargha_delaney(std::span<const double> a, std::span<const double> b,
                                          double confidence) {
  if (a.empty() || b.empty()) return std::nullopt;
  std::vector<double> both(a.begin(), a.end());
  both.insert(both.end(), b.begin(), b.end());
  const std::vector<double> ranks = mid_ranks(both);
  const auto n_a = static_cast<double>(a.size());
  const auto n_b = static_cast<double>(b.size());
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += ranks[i];
  Superiority result;
  result.a = (sum - n_a * (n_a + 1) / 2) / n_a / n_b;
  const auto of_a = placements(std::span(ranks).first(a.size()), a);
  const auto of_b = placements(std::span(ranks).subspan(a.size()), b);
  if (!of_a || !of_b) return result;
  // Placements as shares of the other sample; Satterthwaite's degrees of freedom are then Welch's.
  const Moments share_a{of_a->n, of_a->mean / n_b, of_a->variance / (n_b * n_b)};
  const Moments share_b{of_b->n, of_b->mean / n_a, of_b->variance / (n_a * n_a)};
  const auto error = welch_standard_error(share_a, share_b);
  if (!error) return result;
  const auto interval = t_interval(result.a, *error, confidence);
  if (!interval) return result;
  result.interval = Interval{std::max(0.0, interval->low), std::min(1.0, interval->high)};
  return result;
}

std::optional<double> normal_superiority(const Moments& a, const Moments& b) {
  const double square = a.variance + b.variance;
  if (!(square > 0) || !std::isfinite(square)) return std::nullopt;
  return normal_cdf((a.mean - b.mean) / std::sqrt(square));
}

}  // namespace assay::stats
