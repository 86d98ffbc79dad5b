// The part of `calibration` about studies that stop when they know.
#pragma once

#include <cstdint>

namespace assay {

// Prints a table of how often strata end with a wrong decision, and of the repetitions that they
// take, beside a plan of 30 repetitions in 5 processes. False: a bar is missed by more than two
// standard errors.
bool calibrate_sequential(int64_t trials, uint64_t seed);

}  // namespace assay
