// Contrasts of arms of which every row took exactly as long.
#include <cmath>
#include <limits>

#include "analysis/contrast/contrast.h"

namespace assay {
namespace {

// ln of the number of ways to choose k of n.
double log_choose(double n, double k) {
  return std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1);
}

stats::TestResult result(double statistic, double log_p) {
  return {.statistic = statistic, .df = std::nullopt, .p = std::exp(log_p), .log_p = log_p};
}

}  // namespace

void add_constant_tests(std::span<const stats::StratumMoments> strata,
                        const AnalysisOptions& options, Contrast& contrast) {
  double log_ratio = 0;
  double log_chance = 0;  // of all strata together
  bool slower = false;
  bool faster = false;
  bool tie = false;
  for (const stats::StratumMoments& stratum : strata) {
    const stats::Moments& arm = stratum.numerator;
    const stats::Moments& base = stratum.denominator;
    if (arm.variance != 0 || base.variance != 0) return;
    log_chance -= log_choose(static_cast<double>(arm.n + base.n), static_cast<double>(arm.n));
    // The means of one value repeated differ in their last digit with the number of rows.
    const double log_of_stratum = std::log(arm.mean / base.mean);
    const bool same = std::abs(log_of_stratum) < 1e-12;
    log_ratio += log_of_stratum / static_cast<double>(strata.size());
    slower = slower || (!same && log_of_stratum > 0);
    faster = faster || (!same && log_of_stratum < 0);
    tie = tie || same;
  }
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  if (slower != faster && !tie) {
    contrast.test = result(slower ? kInfinite : -kInfinite, std::log(2.0) + log_chance);
  } else if (!slower && !faster) {
    contrast.test = result(0, 0);
  }
  if (std::abs(log_ratio) < std::log1p(options.margin)) {
    contrast.tost = result(kInfinite, log_chance);
  }
}

}  // namespace assay
