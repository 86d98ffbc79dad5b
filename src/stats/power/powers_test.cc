// Powers and logarithms of many against the library's of each.
#include "stats/power/powers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace assay::stats {
namespace {

// Counts that no vector's width divides, and values over six decades.
std::vector<double> spread_values(size_t n, double of) {
  std::vector<double> values(n);
  for (size_t i = 0; i < n; ++i) {
    values[i] = of * std::exp(6.9 * std::sin(1.7 * static_cast<double>(i)));
  }
  return values;
}

TEST(Powers, SpreadOnLogsIsThePowerOfTheRatioToTheCenter) {
  for (const size_t n : {0, 1, 3, 8, 67}) {
    for (const double exponent : {0.5, 1.0, 1.043, 2.7}) {
      const std::vector<double> before = spread_values(n, 0.31);
      std::vector<double> after = before;
      after.push_back(-5);
      spread_on_logs(std::span(after).first(n), 0.31, exponent);
      for (size_t i = 0; i < n; ++i) {
        const double expected = 0.31 * std::pow(before[i] / 0.31, exponent);
        EXPECT_NEAR(after[i] / expected, 1, 1e-14) << n << " " << exponent << " " << i;
      }
      EXPECT_EQ(after[n], -5) << "nothing beyond the end is written";
    }
  }
}

TEST(Powers, LogRatiosAreTheLogarithmsOfRatios) {
  for (const size_t n : {0, 1, 5, 16, 67}) {
    const std::vector<double> above = spread_values(n, 3);
    const std::vector<double> below = spread_values(n + 1, 0.2);
    std::vector<double> logs(n + 1, -5);
    log_ratios(above, std::span(below).last(n), std::span(logs).first(n));
    for (size_t i = 0; i < n; ++i) {
      EXPECT_NEAR(logs[i], std::log(above[i] / below[i + 1]), 1e-13) << n << " " << i;
    }
    EXPECT_EQ(logs[n], -5) << "nothing beyond the end is written";
  }
}

TEST(Powers, EqualValuesHaveALogarithmOfNothing) {
  const std::vector<double> same(5, 0.7);
  std::vector<double> logs(5, -5);
  log_ratios(same, same, logs);
  for (const double log : logs) EXPECT_EQ(log, 0);
}

}  // namespace
}  // namespace assay::stats
