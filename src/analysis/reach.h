// An interval on a scale that has no end: how far something reaches, where in some resamples it
// never ends or never begins.
#pragma once

#include <optional>
#include <vector>

namespace assay {

// Percentile bounds of replicates that may be infinite; a bound that is infinite is absent. The
// order statistics themselves: between a number and infinity there is nothing to interpolate.
struct Reach {
  std::optional<double> low;   // absent: no lower end
  std::optional<double> high;  // absent: no upper end
};
// `replicates` isn't empty and holds no NaN; reorders it.
Reach reach_of(std::vector<double>& replicates, double confidence);

}  // namespace assay
