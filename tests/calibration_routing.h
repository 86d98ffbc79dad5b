// The part of `calibration` about routing policies.
#pragma once

#include <cstdint>

namespace assay {

// Prints a table of how often intervals of replayed latency and of regret hold what another study's
// rows give, how often a trigger fires on requests like the measured rows, how often a policy takes
// an arm that is no faster, and how often the optimism's interval leaves out 0 where there is none.
// False: a bar is missed by more than two standard errors.
bool calibrate_routing(int64_t trials, uint64_t seed);

}  // namespace assay
