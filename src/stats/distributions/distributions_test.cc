// Tail areas below the smallest double, against mpmath at 60 digits (t with 2 degrees of freedom:
// ln(1 / (2 t^2))), for few and for very many
// degrees of freedom.
#include "stats/distributions/distributions.h"

#include <gtest/gtest.h>

#include <cmath>

namespace assay::stats {
namespace {

TEST(LogTail, OfTHoldsForAnyDegreesOfFreedom) {
  const struct {
    double t, df, log_p;
  } cases[] = {{70.71067811865476, 199999999999998, -2505.177734997749},
               {50, 1e6, -1253.2702122421226},
               {1e100, 7, -1606.9263687992374},
               {1e5, 100, -924.25806127725336},
               {40, 3000, -645.5608251657597},
               {1e170, 2, -783.57207879853542}};
  for (const auto& c : cases) {
    EXPECT_NEAR(student_t_upper(c.t, c.df)->log_p, c.log_p, -c.log_p * 1e-12) << c.t << " " << c.df;
  }
}

TEST(LogTail, OfFHoldsForAnyDegreesOfFreedom) {
  const struct {
    double f, df1, df2, log_p;
  } cases[] = {{3333.333333333334, 2, 299999999999997, -3333.3333332962969},
               {1.0002, 1e12, 1e12, -5004.5242836880991},
               {1e80, 3, 9, -823.03641816611759},
               {500, 5, 1e9, -1239.5855761140718}};
  for (const auto& c : cases) {
    const auto area = f_upper(c.f, c.df1, c.df2);
    EXPECT_NEAR(area->log_p, c.log_p, -c.log_p * 1e-12) << c.f << " " << c.df1 << " " << c.df2;
  }
}

TEST(LogTail, OfChiSquareHoldsForAnyDegreesOfFreedom) {
  const struct {
    double x, df, log_p;
  } cases[] = {{2000, 3, -996.42484049733325},
               {1000100000000.0, 1e12, -2505.0110808813289},
               {1e5, 10, -49959.898860691107}};
  for (const auto& c : cases) {
    EXPECT_NEAR(chi_square_upper(c.x, c.df)->log_p, c.log_p, -c.log_p * 1e-12) << c.x;
  }
}

// With 5e10 degrees of freedom t is normal to 1e-4 here, on both sides of where p gives way to ln
// p.
TEST(LogTail, ContinuesTheAreaItself) {
  for (double t = 30; t < 45; t += 0.25) {
    EXPECT_NEAR(student_t_upper(t, 5e10)->log_p, normal_upper(t).log_p, 1e-4) << t;
  }
}

}  // namespace
}  // namespace assay::stats
