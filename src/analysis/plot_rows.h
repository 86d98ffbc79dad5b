// A bundle's rows and traces as a report draws them.
#pragma once

#include "analysis/findings/findings.h"
#include "analysis/findings/plotted.h"
#include "artifact/bundle.h"

namespace assay {

// `findings` are those of the same bundle: strata and arms are in their order. A trace that can't
// be read is left out.
Result<PlottedRows> plot_rows(const Bundle& bundle, const Findings& findings);

}  // namespace assay
