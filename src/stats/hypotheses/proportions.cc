// Fisher's exact test, and Newcombe's interval.
#include "stats/hypotheses/proportions.h"

#include <algorithm>
#include <cmath>

#include "stats/hypotheses/hypergeometric.h"

namespace assay::stats {
namespace {

bool is_valid(const Proportion& x) {
  return x.n > 0 && x.successes >= 0 && x.successes <= x.n;
}

}  // namespace

std::optional<FisherTest> fisher_exact(const Proportion& a, const Proportion& b, Side side) {
  if (!is_valid(a) || !is_valid(b)) return std::nullopt;
  const Hypergeometric tables(a.n, b.n, a.successes + b.successes);
  FisherTest test;
  const auto of = [](int64_t x, int64_t y) {
    return static_cast<double>(x) * static_cast<double>(y);
  };
  const double divisor = of(a.n - a.successes, b.successes);
  if (divisor > 0) test.odds_ratio = of(a.successes, b.n - b.successes) / divisor;
  switch (side) {
    case Side::kGreater:
      test.log_p = tables.log_sum(a.successes, tables.last());
      break;
    case Side::kLess:
      test.log_p = tables.log_sum(tables.first(), a.successes);
      break;
    case Side::kTwo:
      test.log_p = tables.log_sum_of_rarer(a.successes);
      break;
  }
  test.log_p = std::min(test.log_p, 0.0);
  test.p = std::exp(test.log_p);
  return test;
}

std::optional<Interval> newcombe_interval(const Proportion& a, const Proportion& b,
                                          double confidence) {
  if (!is_valid(a) || !is_valid(b)) return std::nullopt;
  const auto of_a = wilson_interval(a.successes, a.n, confidence);
  const auto of_b = wilson_interval(b.successes, b.n, confidence);
  if (!of_a || !of_b) return std::nullopt;
  const double p_a = static_cast<double>(a.successes) / static_cast<double>(a.n);
  const double p_b = static_cast<double>(b.successes) / static_cast<double>(b.n);
  return Interval{p_a - p_b - std::hypot(p_a - of_a->low, of_b->high - p_b),
                  p_a - p_b + std::hypot(of_a->high - p_a, p_b - of_b->low)};
}

}  // namespace assay::stats
