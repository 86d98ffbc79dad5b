// Findings as one table for spreadsheets.
#pragma once

#include "analysis/findings/findings.h"
#include "base/tables/table.h"

namespace assay {

// One line a stratum and arm: latency, and the contrast with the baseline where there is one.
Table flat_table(const Findings& findings);

}  // namespace assay
