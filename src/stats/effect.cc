// Standardised effect sizes.
#include "stats/effect.h"

#include <cmath>

#include "stats/distributions.h"

namespace assay::stats {

std::optional<double> cohen_d(const Moments& a, const Moments& b) {
  if (a.n < 2 || b.n < 2) return std::nullopt;
  const auto freedom_a = static_cast<double>(a.n - 1);
  const auto freedom_b = static_cast<double>(b.n - 1);
  const double pooled = (freedom_a * a.variance + freedom_b * b.variance) / (freedom_a + freedom_b);
  if (!(pooled > 0) || !std::isfinite(pooled)) return std::nullopt;
  return (a.mean - b.mean) / std::sqrt(pooled);
}

std::optional<double> hedges_g(const Moments& a, const Moments& b) {
  const auto d = cohen_d(a, b);
  if (!d) return std::nullopt;
  const auto m = static_cast<double>(a.n + b.n - 2);
  const double log_j = log_gamma(m / 2) - log_gamma((m - 1) / 2) - std::log(m / 2) / 2;
  return *d * std::exp(log_j);
}

}  // namespace assay::stats
