// The study's demands on the stack (its key `require`), judged by the run.
#pragma once

#include <optional>

#include "analysis/findings/requirements.h"
#include "analysis/rows/samples.h"

namespace assay {

// Absent: the study demands nothing. A cell without evidence, or of which no row is ok, shows
// nothing and fails the criteria that apply to it.
std::optional<Requirements> judge_requirements(const Bundle& bundle, const Samples& samples);

}  // namespace assay
