// The part of `calibration` about comparisons that know more than two bundles show.
#pragma once

#include <cstdint>

namespace assay {

// Prints a table of how often `assay compare` fails equal programs and finds slower ones, with both
// sides in one run, with several runs a side, and beside a history of runs; each beside a single
// pair of bundles. False: a bar is missed by more than two standard errors.
bool calibrate_runs(int64_t trials, uint64_t seed);

}  // namespace assay
