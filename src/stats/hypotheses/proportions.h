// Tests of two proportions, as of crashes among attempts, that hold for small counts.
#pragma once

#include <cstdint>
#include <optional>

#include "stats/samples/intervals.h"

namespace assay::stats {

// 0 <= successes <= n; the tests are absent where that isn't so.
struct Proportion {
  int64_t successes = 0;
  int64_t n = 0;
};

enum class Side {
  kTwo,
  kGreater,  // a's proportion is the larger one
  kLess,
};

// Fisher's exact test (1935), given both margins: hypergeometric. Two-sided: all tables no more
// probable than the one at hand (within rounding). Absent if either n is 0; p is 1 where
// no other table has these margins.
struct FisherTest {
  std::optional<double> odds_ratio;  // of the sample; absent where a divisor is 0
  double p = 1;
  double log_p = 0;
};
std::optional<FisherTest> fisher_exact(const Proportion& a, const Proportion& b,
                                       Side side = Side::kTwo);

// Unconditional exact tests: the largest chance, over every common proportion, of a table at least
// as extreme as the one at hand. More powerful than Fisher's, whose margins aren't fixed by such a
// study.
// - Barnard (1947) orders tables by the pooled z statistic; two-sided by |z|.
// - Boschloo (1970) orders them by Fisher's one-sided p; two-sided is twice the smaller one-sided
// p,
//   at most 1. Never larger than Fisher's one-sided p.
// The maximum is found on a grid of 400 proportions and refined. Absent if either n is 0, for
// margins of n_a n_b > 4e6, and (Barnard) where all or none are successes.
struct UnconditionalTest {
  double statistic = 0;  // Barnard: z. Boschloo: Fisher's one-sided p (two-sided: the smaller one)
  double p = 1;
  double at = 0.5;  // the proportion at which the chance is largest
};
std::optional<UnconditionalTest> barnard_exact(const Proportion& a, const Proportion& b,
                                               Side side = Side::kTwo);
std::optional<UnconditionalTest> boschloo_exact(const Proportion& a, const Proportion& b,
                                                Side side = Side::kTwo);

// Newcombe's hybrid score interval (1998) of the difference of proportions, a less b, from the two
// Wilson intervals. Absent if either n is 0.
std::optional<Interval> newcombe_interval(const Proportion& a, const Proportion& b,
                                          double confidence = 0.95);

}  // namespace assay::stats
