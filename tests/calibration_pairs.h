// The part of `calibration` about contrasts that are paired by repetitions or by rounds of
// processes.
#pragma once

#include <cstdint>

namespace assay {

// Prints a table of how often a contrast of two equal arms says that they differ, of what intervals
// cover, and of how often it finds an arm that takes 5 % longer, beside the unpaired test on the
// same rows. False: a bar is missed by more than two standard errors.
bool calibrate_pairs(int64_t trials, uint64_t seed);

}  // namespace assay
