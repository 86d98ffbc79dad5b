// Tests of a comparison's cells, adjusted and judged together.
#pragma once

#include "analysis/compare/compare.h"

namespace assay {

// Fills cells, combined and families of a comparison that has its crashes: verdicts and alarms, by
// means and, of cells judged by processes, by the typical calls, which are the same cells in the
// same order. alarm_error, of the test that fails a build, is in both already.
void judge_cells(ComparedCells means, ComparedCells typical, Comparison& out);

}  // namespace assay
