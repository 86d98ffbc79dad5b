// Figures of servers under load.
#pragma once

#include "analysis/findings/load.h"
#include "analysis/findings/options.h"
#include "analysis/rows/samples.h"

namespace assay {

LoadSummary describe_load(const Bundle& bundle, const Samples& samples,
                          const AnalysisOptions& options);

}  // namespace assay
