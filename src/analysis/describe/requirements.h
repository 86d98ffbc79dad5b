// What the study demanded of the stack (its key `require`), and whether the run shows that it held.
#pragma once

#include <optional>

#include "analysis/findings/requirements.h"
#include "analysis/rows/samples.h"

namespace assay {

// Absent: the study demands nothing. A cell without evidence, or of which no row is ok, shows
// nothing and fails what applies to it.
std::optional<Requirements> judge_requirements(const Bundle& bundle, const Samples& samples);

}  // namespace assay
