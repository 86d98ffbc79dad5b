// Tests of two independent samples' locations, from samples or from their mean, sd and n.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "stats/distributions/distributions.h"
#include "stats/samples/intervals.h"
#include "stats/samples/summary.h"
#include "stats/sequential/widening.h"

namespace assay::stats {

struct TestResult {
  double statistic = 0;
  std::optional<double> df;  // of t tests
  double p = 1;              // two-sided unless the function says otherwise
  double log_p = 0;          // natural logarithm; holds where p underflows
};

// Student (1908): t = (mean_a - mean_b) / (pooled sd sqrt(1/n_a + 1/n_b)), n_a + n_b - 2 degrees of
// freedom. Assumes equal variances besides what Welch assumes. Absent as Welch's error.
std::optional<TestResult> student_t(const Moments& a, const Moments& b);

// An estimate's error and its degrees of freedom, on which t test, TOST and MDE rest.
struct StandardError {
  double value = 0;
  double df = 0;
  // The error for observations that all depend on one another as `by` says: the relative variance
  // of value^2, 2 / df, is that of the spread and log_variance together (Satterthwaite 1946). At
  // least 1 degree of freedom.
  StandardError widened(const Widening& by) const;
};
// Ratio of that interval's width to that of independent observations: the error's widening times
// the ratio of t quantiles. Fewer than 3 degrees of freedom are taken for 3.
double interval_widening(double df, const Widening& by, double confidence);
StandardError error_of_mean(const Moments& of);
// Welch (1947): sqrt(var_a/n_a + var_b/n_b), degrees of freedom by Satterthwaite (1946). Assumes
// independent observations and means near normal. Absent if either n < 2 or both variances are 0.
std::optional<StandardError> welch_standard_error(const Moments& a, const Moments& b);
// The error of a sum of estimates that know nothing of one another: squares add up, degrees of
// freedom are Satterthwaite's (1946). Absent where that is 0 or can't be had.
std::optional<StandardError> error_of_sum(std::span<const StandardError> parts);
// The same of Student's test.
std::optional<StandardError> pooled_standard_error(const Moments& a, const Moments& b);

// Two-sided t test of an estimate with a standard error, and its interval.
std::optional<TestResult> t_test(double estimate, const StandardError& error);
// One-sided: p is small where the estimate lies well above 0, or well below.
std::optional<TestResult> t_test_above(double estimate, const StandardError& error);
std::optional<TestResult> t_test_below(double estimate, const StandardError& error);
std::optional<Interval> t_interval(double estimate, const StandardError& error,
                                   double confidence = 0.95);
// The interval of a ratio whose logarithm is the estimate: exp of both ends.
std::optional<Interval> t_interval_of_ratio(double log_ratio, const StandardError& error,
                                            double confidence = 0.95);

// Two one-sided tests (Schuirmann 1987) of low < the estimated value < high, for an estimate that
// is near t: p is the larger of the two one-sided p; statistic and df belong to it. Small p: the
// value lies inside the margins.
std::optional<TestResult> tost(double estimate, const StandardError& error, double low,
                               double high);
// Equivalence of the ratio: low < mean_a / mean_b < high, for positive means, as the two one-sided
// Welch tests of mean_a - low mean_b and mean_a - high mean_b (Sasabuchi; Hauschke, Kieser and
// Hothorn 1999). Absent where Welch is, or if a mean isn't positive, or low <= 0.
std::optional<TestResult> tost_ratio(const Moments& a, const Moments& b, double low, double high,
                                     const Widening& widening = {});
// Mann-Whitney U (1947) of `a`: pairs with a > b, ties counting half. With both n <= 20 and no ties
// the two-sided p is exact; otherwise normal with tie-corrected variance and continuity correction.
// a = U / (n_a n_b) is Vargha and Delaney's A (2000): P(a > b) + P(a = b) / 2. Absent if a sample
// is empty; p is 1 where every value is the same. O(n log n).
struct RankTest {
  double u = 0;
  double a = 0.5;
  double p = 1;
  double log_p = 0;
  bool exact = false;
};
std::optional<RankTest> mann_whitney(std::span<const double> a, std::span<const double> b);

// Equality of variances: one-way analysis of variance of |x - centre of its group| (Levene 1960;
// with medians Brown and Forsythe 1974, which heavy tails don't mislead). statistic is F, df its
// first degrees of freedom, df2 the second. Absent for fewer than 2 groups, an empty group, no more
// values than groups, or deviations that don't vary within groups.
enum class Centre { kMean, kMedian };
struct FTest {
  double f = 0;
  double df1 = 0;
  double df2 = 0;
  double p = 1;
  double log_p = 0;
};
std::optional<FTest> levene(std::span<const std::vector<double>> groups,
                            Centre centre = Centre::kMedian);

// One-way analysis of variance from the groups' mean, variance and n (a group may have n = 1).
std::optional<FTest> one_way_anova(std::span<const Moments> groups);

}  // namespace assay::stats
