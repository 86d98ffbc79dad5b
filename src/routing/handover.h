// Hand-overs of the cache between the arm of the prompt and the arm that decodes, which no row
// measured.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/rows/samples.h"
#include "routing/policy.h"

namespace assay {

// One sentence for each pair of arms that the rules let serve the prompt and the decoding of one
// request, and whose rows state another backend, cache, type or quantisation: every row decodes
// what its own arm prefilled, so no row shows the cost of the cache's hand-over, or that there can
// be one.
std::vector<std::string> unmeasured_handovers(const Samples& samples,
                                              std::span<const PolicyRule> rules);

}  // namespace assay
