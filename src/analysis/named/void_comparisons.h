// Strata whose arms can't be held against one another, with any rows.
#pragma once

#include <string>
#include <vector>

#include "analysis/rows/samples.h"
#include "analysis/rows/summary.h"
#include "artifact/bundle.h"

namespace assay {

// For each stratum the reason why a comparison of its arms decides nothing: they ran one after the
// other, in sittings whose environments differ, or not interleaved while another program computed
// on their GPU. Empty: it does decide. Contrasts, decisions, portability and routing all go by it.
std::vector<std::string> void_comparisons(const Bundle& bundle, const StudySummary& study,
                                          const Samples& samples);

}  // namespace assay
