// The t interval: cheap, deterministic, and close to the bootstrap's for means of tens of samples.
#include "harness/stopping.h"

#include <cmath>

#include "stats/distributions/distributions.h"
#include "stats/samples/summary.h"

namespace assay {

std::optional<double> relative_interval(std::span<const double> latencies) {
  const auto moments = stats::moments(latencies);
  if (!moments || moments->mean <= 0) return std::nullopt;
  const auto n = static_cast<double>(moments->n);
  const auto t = stats::student_t_quantile(0.975, n - 1);
  if (!t) return std::nullopt;
  return *t * std::sqrt(moments->variance / n) / moments->mean;
}

bool wants_more(const Stopping& stopping, std::span<const double> latencies, int64_t repetitions) {
  if (repetitions >= stopping.max_repetitions) return false;
  const auto interval = relative_interval(latencies);
  return interval && *interval > stopping.relative_ci;
}

}  // namespace assay
