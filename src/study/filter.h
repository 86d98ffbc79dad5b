// A part of a study: some of its models, arms, phases or scenarios.
#pragma once

#include <span>
#include <string>

#include "base/result.h"
#include "study/study.h"

namespace assay {

// Each filter is "AXIS=NAME,NAME": model, arm, phase or scenario, and which of them stay; filters
// of several axes all hold. A baseline that doesn't stay gives way to the first arm that does.
// bad_input that names the axis or the name and the nearest known one; an axis given twice.
Status keep_only(Study& study, std::span<const std::string> filters);

}  // namespace assay
