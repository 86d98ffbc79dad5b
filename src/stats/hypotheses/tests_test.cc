// Tests, effect sizes and power against SciPy and mpmath.
#include "stats/hypotheses/tests.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "stats/estimates/ratio.h"
#include "stats/hypotheses/effect.h"
#include "stats/hypotheses/multiple.h"
#include "stats/power/power.h"
#include "stats/samples/reference_samples.h"

namespace assay::stats {
namespace {

const Moments kA = *moments(kSampleA);
const Moments kB = *moments(kSampleB);

void expect_close(double found, double expected, double relative = 1e-9) {
  EXPECT_NEAR(found, expected, std::abs(expected) * relative);
}

std::optional<TestResult> welch_t(const Moments& a, const Moments& b) {
  const auto error = welch_standard_error(a, b);
  return error ? t_test(a.mean - b.mean, *error) : std::nullopt;
}

TEST(TIntervalOfRatio, IsExpOfTheLogarithms) {
  const StandardError error{0.1, 7};
  const auto logs = t_interval(0.2, error, 0.9);
  EXPECT_EQ(*t_interval_of_ratio(0.2, error, 0.9), exp_of(*logs));
  EXPECT_FALSE(t_interval_of_ratio(std::nan(""), error));
}

TEST(Welch, AgreesWithSciPy) {
  // st.ttest_ind(A, B, equal_var=False)
  const auto test = welch_t(kA, kB);
  expect_close(test->statistic, 1.6430850112403013);
  expect_close(*test->df, 11.821692615909654);
  expect_close(test->p, 0.12667713745938564);
  expect_close(test->log_p, std::log(0.12667713745938564));
  expect_close(welch_t(kB, kA)->statistic, -1.6430850112403013);
}

TEST(Welch, WorksFromPublishedFigures) {
  // st.ttest_ind_from_stats(11.87, 9.19, 1620, 7.12, 6.73, 1620, equal_var=False)
  const auto test = welch_t({1620, 11.87, 9.19 * 9.19}, {1620, 7.12, 6.73 * 6.73});
  expect_close(test->statistic, 16.784140534064676);
  expect_close(test->p, 1.799024216508787e-60, 1e-8);
}

TEST(Welch, IsAbsentWithoutVarianceOrObservations) {
  EXPECT_FALSE(welch_t({5, 1, 0}, {5, 2, 0}));
  EXPECT_FALSE(welch_t({1, 1, 0}, kB));
  EXPECT_TRUE(welch_t({5, 1, 0}, kB));
  EXPECT_TRUE(welch_t({5, 1e-200, 1e-310}, {5, 2e-200, 1e-310})) << "tiny scales";
}

TEST(StudentT, ReportsTheLogarithmOfAreasThatUnderflow) {
  // mpmath, 60 digits: log(betainc(df/2, 1/2, 0, df/(df + t^2), regularized=True))
  expect_close(student_t_two_sided(80, 500)->log_p, -659.463287298967846);
  expect_close(student_t_two_sided(60, 3000)->log_p, -1186.61230851491002, 1e-12);
  const auto far = student_t_two_sided(1e40, 58);
  EXPECT_EQ(far->p, 0);
  expect_close(far->log_p, -5226.50489142960891, 1e-12);
  expect_close(normal_two_sided(45).log_p, -1016.53294706139243, 1e-9);  // log(erfc(45/sqrt(2)))
}

TEST(Tost, AgreesWithTwoOneSidedTestsOfSciPy) {
  // max(st.ttest_ind(A, lo*B, equal_var=False, alternative="greater").pvalue,
  //     st.ttest_ind(A, hi*B, equal_var=False, alternative="less").pvalue), lo, hi = 1/1.5, 1.5
  expect_close(tost_ratio(kA, kB, 1 / 1.5, 1.5)->p, 0.14936595704059819);
  // the same with B - 3 and B + 3
  expect_close(tost(kA.mean - kB.mean, *welch_standard_error(kA, kB), -3, 3)->p,
               0.4805381269702389);
}

TEST(Tost, ReproducesThePublishedEquivalence) {
  // Published: difference 0.197, standard error 0.254, 146.7 degrees of freedom; p = 0.00096 within
  // 1 and 0.118 within 0.5. The inputs' own rounding gives a range of p.
  const StandardError small{0.2535, 146.7};
  const StandardError large{0.2545, 146.7};
  EXPECT_LT(tost(0.1965, small, -1, 1)->p, 0.00096);
  EXPECT_GT(tost(0.1975, large, -1, 1)->p, 0.00096);
  EXPECT_LT(tost(0.1965, small, -0.5, 0.5)->p, 0.118);
  EXPECT_GT(tost(0.1975, large, -0.5, 0.5)->p, 0.118);
}

TEST(Tost, OfARatioDoesNotDependOnWhichArmIsTheBaseline) {
  expect_close(tost_ratio(kA, kB, 1 / 1.4, 1.4)->p, tost_ratio(kB, kA, 1 / 1.4, 1.4)->p);
}

TEST(Tost, IsAbsentForARatioOfMeansThatAreNotPositive) {
  EXPECT_FALSE(tost_ratio({5, -1, 1}, {5, 2, 1}, 0.9, 1.1));
  EXPECT_FALSE(tost_ratio({5, 1, 0}, {5, 2, 0}, 0.9, 1.1));
}

TEST(StandardError, OfDependentObservationsIsThatOfFewer) {
  const Widening twice{2, 8.0 / 38, 0};
  const StandardError error = StandardError{0.5, 38}.widened(twice);
  EXPECT_DOUBLE_EQ(error.value, 1);
  EXPECT_DOUBLE_EQ(error.df, 8);
  // The spread's relative variance, 2 / 8, and that of an estimated r.
  EXPECT_DOUBLE_EQ((StandardError{1, 38}.widened({2, 8.0 / 38, 0.25}).df), 4);
  EXPECT_EQ((StandardError{1, 8}.widened({9, 0.01, 3}).df), 1);
  EXPECT_EQ(interval_widening(38, {}, 0.95), 1);
  // 2 * st.t.ppf(0.975, 8) / st.t.ppf(0.975, 38)
  EXPECT_NEAR(interval_widening(38, twice, 0.95), 2.2782165413360107, 1e-9);
}

TEST(Tost, OfDependentObservationsClaimsLess) {
  const Moments a{20, 10.02, 0.01};
  const Moments b{20, 10.00, 0.01};
  EXPECT_GT(tost_ratio(a, b, 1 / 1.01, 1.01, {2, 0.2, 0})->p, tost_ratio(a, b, 1 / 1.01, 1.01)->p);
}

TEST(CombinedRatio, OfOneStratumHasWelchsT) {
  const StratumMoments strata[] = {{kA, kB}};
  const auto ratio = combined_log_ratio(strata);
  expect_close(log_ratio_test(*ratio)->statistic, welch_t(kA, kB)->statistic);
  // A mean that two huge values made: however huge they are, it is as unsure.
  for (const double huge : {50.0, 1000.0, 1e6}) {
    const double values[] = {1, 1, 1, huge, huge};
    const StratumMoments spiked[] = {{*moments(values), {5, 1, 0.0004}}};
    EXPECT_GT(log_ratio_test(*combined_log_ratio(spiked))->p, 0.15) << huge;
  }
}

// Latencies of captured decode beside kMoodyMs, ms.
constexpr double kCaptured[] = {156.0, 156.0, 155.9, 155.9, 156.1, 156.1, 155.9, 155.9, 156, 156};

TEST(LogScale, OfSamplesThatAreApartIsTheMeanItself) {
  EXPECT_EQ(log_scale({1468, 400}, {156, 0.1}, true), 1468);
  EXPECT_EQ(log_scale({156, 0.1}, {1468, 400}, true), 156);
  const double logarithmic = (1468 - 156.0) / std::log(1468 / 156.0);
  EXPECT_NEAR(log_scale({1468, 400}, {156, 0.1}, false), logarithmic, 1e-9);
  EXPECT_NEAR(log_scale({1468, 490}, {156, 0.1}, true), logarithmic, 1e-9) << "hardly known";
  EXPECT_NEAR(log_scale({156, 0.1}, {1468, 490}, true), logarithmic, 1e-9) << "hardly known";
  EXPECT_EQ(log_scale({7, 0.1}, {7, 0.1}, false), 7);
}

TEST(LogScale, TellsTenTimesTheTimeFromMoods) {
  StratumMoments pair{*moments(kCaptured), *moments(kMoodyMs), {3, 0.3, 0.1}};
  const StratumMoments overlapping[] = {pair};
  pair.apart = true;
  const StratumMoments apart[] = {pair};
  const auto welch = log_ratio_test(*combined_log_ratio(overlapping));
  const auto test = log_ratio_test(*combined_log_ratio(apart));
  expect_close(welch->statistic, -3.3102677130184714);
  expect_close(test->statistic, -8.302757368111862);  // computed with Python
  EXPECT_LT(test->p, welch->p / 5);
}

TEST(MannWhitney, AgreesWithSciPyWithTies) {
  // st.mannwhitneyu(A, B, method="asymptotic")
  const auto test = mann_whitney(kSampleA, kSampleB);
  EXPECT_DOUBLE_EQ(test->u, 161.5);
  EXPECT_FALSE(test->exact);
  expect_close(test->p, 0.0005271596639029281);
  expect_close(test->a, 161.5 / 180);
  expect_close(mann_whitney(kSampleB, kSampleA)->a, 1 - 161.5 / 180);
}

TEST(MannWhitney, IsExactForSmallSamplesWithoutTies) {
  // st.mannwhitneyu(A[:5], [9.1, 9.6, 8.8, 10.15], method="exact")
  const auto test = mann_whitney(std::span(kSampleA).first(5), std::vector{9.1, 9.6, 8.8, 10.15});
  EXPECT_TRUE(test->exact);
  EXPECT_DOUBLE_EQ(test->u, 19);
  expect_close(test->p, 0.031746031746031744);
}

TEST(MannWhitney, AgreesWithSciPyOnLargerSamples) {
  std::vector<double> x;  // np.arange(40.) * 1.37 % 7 + .001 * np.arange(40)
  std::vector<double> y;  // np.arange(40.) * 2.11 % 6 + 2.5
  for (int i = 0; i < 40; ++i) {
    x.push_back(std::fmod(i * 1.37, 7.0) + 0.001 * i);
    y.push_back(std::fmod(i * 2.11, 6.0) + 2.5);
  }
  const auto test = mann_whitney(x, y);  // st.mannwhitneyu(x, y, method="asymptotic")
  EXPECT_DOUBLE_EQ(test->u, 395);
  expect_close(test->p, 9.929709521351246e-05);
}

TEST(MannWhitney, OfOneRepeatedValueFindsNothing) {
  const std::vector<double> same(25, 2.0);
  EXPECT_EQ(mann_whitney(same, same)->p, 1);
  EXPECT_EQ(mann_whitney(same, same)->a, 0.5);
  EXPECT_FALSE(mann_whitney(same, {}));
}

TEST(Effect, AgreesWithTheFormulasInNumPy) {
  // d = (A.mean() - B.mean()) / sp, m = 25,
  // g = d * exp(gammaln(m/2) - gammaln((m-1)/2) - .5 * log(m/2))
  expect_close(*cohen_d(kA, kB), 0.7075940792342194);
  expect_close(*hedges_g(kA, kB), 0.6861154710922757);
  EXPECT_NEAR(*cohen_d({1620, 7.12, 6.73 * 6.73}, {1620, 11.87, 9.19 * 9.19}), -0.59, 0.005);
  EXPECT_FALSE(cohen_d({5, 1, 0}, {5, 2, 0}));
  EXPECT_FALSE(hedges_g({1, 1, 0}, kB));
}

TEST(Power, AgreesWithSciPysNoncentralT) {
  // st.nct.sf(tc, df, nc) + st.nct.cdf(-tc, df, nc), tc = st.t.ppf(.975, df), nc = 1.7 / se; and
  // brentq for power .8
  const auto error = *welch_standard_error(kA, kB);
  expect_close(*t_test_power(1.7, error, 0.05), 0.1430260266334566, 1e-8);
  expect_close(*minimum_detectable_difference(error), 5.417033033482449, 1e-8);
}

TEST(Holm, AdjustsStepDown) {
  // Worked by hand: sorted .005 .01 .03 .04 times 4 3 2 1 = .02 .03 .06 .04 -> monotone .02 .03 .06
  // .06
  const std::vector<double> p = {0.01, 0.04, 0.03, 0.005};
  const std::vector<double> expected = {0.03, 0.06, 0.06, 0.02};
  const auto adjusted = holm(p);
  for (size_t i = 0; i < p.size(); ++i) EXPECT_DOUBLE_EQ(adjusted[i], expected[i]);
  EXPECT_EQ(holm(std::vector{0.6, 0.7}), (std::vector{1.0, 1.0}));
  EXPECT_TRUE(holm({}).empty());
  EXPECT_DOUBLE_EQ(bonferroni(p)[0], 0.04);
}

TEST(CombinedRatio, AgreesWithTheFormulaInNumPy) {
  // Strata A/B and (A/2)/(0.55 B); estimate, error and df as in the header, computed with NumPy.
  const auto half = [](Moments x, double f) {
    return Moments{x.n, x.mean * f, x.variance * f * f};
  };
  const StratumMoments strata[] = {{kA, kB}, {half(kA, 0.5), half(kB, 0.55)}};
  const auto ratio = combined_log_ratio(strata);
  expect_close(ratio->estimate, 0.21373532369809617);
  expect_close(ratio->error.value, 0.11019037986778257);
  expect_close(ratio->error.df, 23.758199551504983);
  expect_close(log_ratio_test(*ratio)->p, 0.06437939242089051);
  EXPECT_FALSE(combined_log_ratio({}));
}

}  // namespace
}  // namespace assay::stats
