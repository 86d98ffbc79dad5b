// Reach of an effect in tokens, by its resamples.
#pragma once

#include <vector>

#include "analysis/findings/reach.h"

namespace assay {

// Percentile bounds of replicates that may be infinite; a bound that is infinite is absent. The
// order statistics themselves: between a number and infinity there is nothing to interpolate.
// `replicates` isn't empty and holds no NaN; reorders it.
Reach reach_of(std::vector<double>& replicates);

}  // namespace assay
