// Bounds of the numbers of findings.json, by their members' names: a file that someone edited, or
// another program wrote, may have members of the right types that no measurement can give.
#pragma once

#include "analysis/findings/findings.h"
#include "base/records/record.h"

namespace assay {

// The first member out of its bounds: a ratio that isn't positive, a time, rate or count below 0, a
// probability beyond 0 to 1, an interval whose low end is above its high one. Members that no bound
// is known of are left alone, and so are nulls.
Fit out_of_bounds(const Json& json);

// The first of the findings whose members contradict one another: more rows lost than attempted,
// statuses that don't add up to them, a mean, median or percentile out of the order that any sample
// has, more slow rows with a recompile than slow ones.
Fit figures_at_odds(const Findings& findings);

}  // namespace assay
