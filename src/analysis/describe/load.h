// Figures of servers under load.
#pragma once

#include "analysis/findings/load.h"
#include "analysis/rows/samples.h"

namespace assay {

LoadSummary describe_load(const Bundle& bundle, const Samples& samples);

}  // namespace assay
