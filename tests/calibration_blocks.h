// The part of `calibration` about the worlds of two runs, in one run whose arms take turns.
#pragma once

#include <cstdint>

namespace assay {

// Prints a table of how often a contrast that is paired by blocks says that equal arms differ, and
// of what its intervals cover. False: a bar is missed by more than two standard errors.
bool calibrate_blocks(int64_t trials, uint64_t seed);

}  // namespace assay
