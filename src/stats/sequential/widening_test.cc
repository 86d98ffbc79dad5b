// Tests the effect of alike neighbours on the error of a mean.
#include "stats/sequential/widening.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace assay::stats {
namespace {

// The definitions computed with whole matrices: S_ij = r^|i-j|, M = I - 11'/n.
FirstOrder by_matrices(size_t n, double r) {
  std::vector<std::vector<double>> ms(n, std::vector<double>(n));
  double sum = 0;
  for (size_t j = 0; j < n; ++j) {
    double column = 0;
    for (size_t i = 0; i < n; ++i) {
      ms[i][j] = std::pow(r, std::abs(static_cast<double>(i) - static_cast<double>(j)));
      column += ms[i][j];
    }
    sum += column;
    for (size_t i = 0; i < n; ++i) ms[i][j] -= column / static_cast<double>(n);
  }
  double trace = 0;
  double trace_of_square = 0;
  for (size_t i = 0; i < n; ++i) {
    trace += ms[i][i];
    for (size_t j = 0; j < n; ++j) trace_of_square += ms[i][j] * ms[j][i];
  }
  return {sum / static_cast<double>(n), trace * trace / trace_of_square};
}

TEST(FirstOrder, IsThatOfItsMatrices) {
  for (const size_t n : {2u, 5u, 10u, 30u, 120u}) {
    for (const double r : {0.05, 0.3, 0.667, 0.9, 0.97}) {
      const FirstOrder expected = by_matrices(n, r);
      const FirstOrder found = first_order(static_cast<int64_t>(n), r);
      EXPECT_NEAR(found.inflation, expected.inflation, 1e-9 * expected.inflation) << n << " " << r;
      EXPECT_NEAR(found.df, expected.df, 1e-6 * expected.df) << n << " " << r;
    }
  }
}

TEST(FirstOrder, OfIndependentValuesChangesNothing) {
  EXPECT_EQ(first_order(30, 0).inflation, 1);
  EXPECT_EQ(first_order(30, 0).df, 29);
  const Widening none = first_order_widening(30, 0, 0.2);
  EXPECT_EQ(none.error, 1);
  EXPECT_EQ(none.df, 1);
  EXPECT_EQ(none.log_variance, 0);
}

TEST(FirstOrder, OfManyValuesIsTheKnownLimit) {
  const FirstOrder found = first_order(10'000'000, 0.5);
  EXPECT_NEAR(found.inflation, 3, 1e-5);                 // (1 + r) / (1 - r)
  EXPECT_NEAR(found.df, 1e7 * 0.75 / 1.25, 1e7 * 1e-5);  // n (1 - r^2) / (1 + r^2)
}

TEST(FirstOrderWidening, MakesUpForTheSpreadThatAlikeValuesHide) {
  const FirstOrder of = first_order(10, 0.5);
  const Widening found = first_order_widening(10, 0.5, 0.1);
  // Var(mean) = g sd^2 / n, and the sample variance is (n - g) / (n - 1) of sd^2 on average.
  EXPECT_NEAR(found.error * found.error * (10 - of.inflation) / 9, of.inflation, 1e-12);
  EXPECT_NEAR(found.df * 9, of.df, 1e-12);
  EXPECT_GT(found.log_variance, 0);
  EXPECT_EQ(first_order_widening(10, 0.5, 0).log_variance, 0);
  EXPECT_GT(first_order_widening(10, 0.5, 0.2).log_variance, found.log_variance);
}

TEST(FirstOrderWidening, HasALimit) {
  const Widening found = first_order_widening(10, 0.97, 0.5);
  EXPECT_NEAR(found.error, 3, 1e-9);  // as if g were n / 2
  EXPECT_TRUE(std::isfinite(found.log_variance));
}

}  // namespace
}  // namespace assay::stats
