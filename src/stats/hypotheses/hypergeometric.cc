// Chances by ratios from the mode outward.
#include "stats/hypotheses/hypergeometric.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace assay::stats {
namespace {

// ln of a sum of exponentials, smallest first.
double log_sum_exp(std::vector<double> logs) {
  std::ranges::sort(logs);
  double sum = 0;
  for (const double x : logs) sum += std::exp(x - logs.back());
  return logs.back() + std::log(sum);
}

}  // namespace

Hypergeometric::Hypergeometric(int64_t n_a, int64_t n_b, int64_t successes)
    : first_(std::max<int64_t>(0, successes - n_b)) {
  const int64_t last = std::min(n_a, successes);
  // ln P(x + 1) - ln P(x)
  const auto step = [&](int64_t x) {
    const double up = static_cast<double>(n_a - x) * static_cast<double>(successes - x);
    const double down = static_cast<double>(x + 1) * static_cast<double>(n_b - successes + x + 1);
    return std::log(up / down);
  };
  const auto total = static_cast<double>(n_a) + static_cast<double>(n_b) + 2;
  const double mode = (static_cast<double>(n_a) + 1) * (static_cast<double>(successes) + 1) / total;
  const int64_t middle = std::clamp(static_cast<int64_t>(mode), first_, last);
  logs_.resize(static_cast<size_t>(last - first_ + 1));
  const auto at = static_cast<size_t>(middle - first_);
  for (size_t i = at; i + 1 < logs_.size(); ++i) {
    logs_[i + 1] = logs_[i] + step(first_ + static_cast<int64_t>(i));
  }
  for (size_t i = at; i > 0; --i) {
    logs_[i - 1] = logs_[i] - step(first_ + static_cast<int64_t>(i) - 1);
  }
  const double all = log_sum_exp(logs_);
  for (double& x : logs_) x -= all;
}

double Hypergeometric::log_sum(int64_t low, int64_t high) const {
  return log_sum_exp({logs_.begin() + (low - first_), logs_.begin() + (high - first_ + 1)});
}

double Hypergeometric::log_sum_of_rarer(int64_t at) const {
  // Tables that mirror one another are equally probable but for the rounding of their logarithms.
  const double limit = logs_[static_cast<size_t>(at - first_)];
  const double slack = 1e-13 * (1 + std::abs(limit));
  std::vector<double> rarer;
  for (const double x : logs_) {
    if (x <= limit + slack) rarer.push_back(x);
  }
  return log_sum_exp(std::move(rarer));
}

std::vector<double> Hypergeometric::log_upper_tails() const {
  std::vector<double> tails(logs_);
  for (size_t i = tails.size() - 1; i-- > 0;) {
    const double larger = std::max(tails[i], tails[i + 1]);
    const double smaller = std::min(tails[i], tails[i + 1]);
    tails[i] = larger + std::log1p(std::exp(smaller - larger));
  }
  return tails;
}

}  // namespace assay::stats
