// Mann-Whitney U: exact by counting for small samples, normal with tie correction otherwise.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "stats/hypotheses/tests.h"

namespace assay::stats {
namespace {

constexpr size_t kExactLimit = 20;

struct Ranks {
  double sum_a = 0;  // mid-ranks of the first sample
  double ties = 0;   // sum of t^3 - t over groups of t equal values
};

Ranks rank(std::span<const double> a, std::span<const double> b) {
  std::vector<std::pair<double, bool>> all;
  all.reserve(a.size() + b.size());
  for (const double x : a) all.emplace_back(x, true);
  for (const double x : b) all.emplace_back(x, false);
  std::ranges::sort(all);
  Ranks ranks;
  for (size_t i = 0; i < all.size();) {
    size_t end = i;
    double of_a = 0;
    for (; end < all.size() && all[end].first == all[i].first; ++end) of_a += all[end].second;
    const auto t = static_cast<double>(end - i);
    ranks.sum_a += of_a * (static_cast<double>(i + end + 1) / 2);
    ranks.ties += t * t * t - t;
    i = end;
  }
  return ranks;
}

// Number of orderings of m and n values with U = u, for every u: the coefficients of the Gaussian
// binomial (m + n choose m), by one factor (1 - q^(n+i)) / (1 - q^i) at a time. Doubles hold them
// exactly enough: the largest total at the limit is 1.4e11.
std::vector<double> u_counts(size_t m, size_t n) {
  std::vector<double> counts(m * n + 1, 0.0);
  counts[0] = 1;
  for (size_t i = 1; i <= m; ++i) {
    for (size_t u = counts.size(); u-- > n + i;) counts[u] -= counts[u - n - i];
    for (size_t u = i; u < counts.size(); ++u) counts[u] += counts[u - i];
  }
  return counts;
}

double exact_p(double u, size_t m, size_t n) {
  const std::vector<double> counts = u_counts(m, n);
  const double far = std::max(u, static_cast<double>(m * n) - u);
  double total = 0;
  double tail = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    total += counts[i];
    if (static_cast<double>(i) >= far) tail += counts[i];
  }
  return std::min(1.0, 2 * tail / total);
}

}  // namespace

std::optional<RankTest> mann_whitney(std::span<const double> a, std::span<const double> b) {
  if (a.empty() || b.empty()) return std::nullopt;
  const auto m = static_cast<double>(a.size());
  const auto n = static_cast<double>(b.size());
  const Ranks ranks = rank(a, b);
  RankTest test;
  test.u = ranks.sum_a - m * (m + 1) / 2;
  test.a = test.u / (m * n);
  if (ranks.ties == 0 && a.size() <= kExactLimit && b.size() <= kExactLimit) {
    test.exact = true;
    test.p = exact_p(test.u, a.size(), b.size());
    test.log_p = std::log(test.p);
    return test;
  }
  const double total = m + n;
  const double variance = m * n / 12 * (total + 1 - ranks.ties / (total * (total - 1)));
  if (!(variance > 0)) return test;  // every value the same
  const double distance = std::max(0.0, std::abs(test.u - m * n / 2) - 0.5);
  const TailArea area = normal_two_sided(distance / std::sqrt(variance));
  test.p = area.p;
  test.log_p = area.log_p;
  return test;
}

}  // namespace assay::stats
