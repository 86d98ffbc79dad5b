// The two sides of `assay compare --run`: one screen, one line a cell.
#pragma once

#include "analysis/compare/compare.h"
#include "report/report.h"

namespace assay {

ReportSection sides_section(const Comparison& comparison);

}  // namespace assay
