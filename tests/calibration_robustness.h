// The part of `calibration` about judgements across bundles.
#pragma once

#include <cstdint>

namespace assay {

// Prints a table of how often `assay portability` gives a verdict or a band of the robustness index
// that isn't so, and how often the index's interval covers. False: a bar is missed by more than two
// standard errors.
bool calibrate_robustness(int64_t trials, uint64_t seed);

}  // namespace assay
