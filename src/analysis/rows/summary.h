// A bundle's study, by its manifest.
#pragma once

#include "analysis/findings/strata.h"
#include "artifact/bundle.h"

namespace assay {

// The arms as the study lists them, the baseline first, then those that only rows name.
StudySummary summarize(const Bundle& bundle);

// The identity tuple and the hashes of the measured programs and models, as dotted names; unknown
// ones are left out.
std::vector<std::pair<std::string, std::string>> identity_lines(const Json& manifest);

}  // namespace assay
