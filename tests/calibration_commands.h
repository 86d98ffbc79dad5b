// The part of `calibration` about commands that print several samples an invocation.
#pragma once

#include <cstdint>

namespace assay {

// Prints a table of how often two equal commands are said to differ, and of what their intervals
// cover, where samples of an invocation are alike and invocations are not. False: a bar is missed
// by more than two standard errors.
bool calibrate_commands(int64_t trials, uint64_t seed);

}  // namespace assay
