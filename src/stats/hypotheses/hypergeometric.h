// The chances of all 2 x 2 tables with given margins.
#pragma once

#include <cstdint>
#include <vector>

namespace assay::stats {

// X: how many of `successes` out of n_a + n_b fall to the first n_a. Chances are built from the
// mode by their ratios, in logarithms, so that tails far below the smallest double keep their
// digits. O(tables).
class Hypergeometric {
 public:
  Hypergeometric(int64_t n_a, int64_t n_b, int64_t successes);

  int64_t first() const { return first_; }
  int64_t last() const { return first_ + static_cast<int64_t>(logs_.size()) - 1; }

  // ln P(low <= X <= high), both among first()..last().
  double log_sum(int64_t low, int64_t high) const;
  // ln of the sum over tables that are no more probable than `at`, within rounding.
  double log_sum_of_rarer(int64_t at) const;
  // ln P(X >= first() + i) for every i.
  std::vector<double> log_upper_tails() const;

 private:
  int64_t first_ = 0;
  std::vector<double> logs_;  // ln P(X = first + i)
};

}  // namespace assay::stats
