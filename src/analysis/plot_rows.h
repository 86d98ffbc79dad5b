// A bundle's rows and traces as a report draws them.
#pragma once

#include "analysis/findings/plotted.h"
#include "analysis/rows/samples.h"
#include "artifact/bundle.h"

namespace assay {

// `samples` are those of the bundle, with the strata and arms of its findings. A trace that can't
// be read is left out.
PlottedRows plot_rows(const Bundle& bundle, const Samples& samples);

}  // namespace assay
