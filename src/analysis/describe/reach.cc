// Percentile bounds of replicates that may be infinite.
#include "analysis/describe/reach.h"

#include <algorithm>
#include <cmath>

#include "analysis/findings/options.h"

namespace assay {

Reach reach_of(std::vector<double>& replicates) {
  const auto last = static_cast<double>(replicates.size() - 1);
  const auto at = [&](double place) -> std::optional<double> {
    const auto nth = replicates.begin() + static_cast<std::ptrdiff_t>(place);
    std::ranges::nth_element(replicates, nth);
    return std::isfinite(*nth) ? std::optional(*nth) : std::nullopt;
  };
  const double tail = (1 - kConfidence) / 2;
  return {at(std::floor(tail * last)), at(std::ceil((1 - tail) * last))};
}

}  // namespace assay
