// One study for two programs: every arm twice, served by the base and by the candidate.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "study/study.h"

namespace assay {

// The names of a two-sided study's arms: ARM@base and ARM@cand.
inline constexpr std::string_view kBaseSide = "@base";
inline constexpr std::string_view kCandSide = "@cand";

// The study with two arms in the place of each, next to one another, which differ by the program
// that serves them alone: an assay executable where the study's arms are native, a Python
// interpreter where they are torch's; of commands a revision of their checkout, or the text that
// stands for {side}. What makes pairs of their repetitions holds from here on: the
// order is interleaved, and nothing stops early. bad_input: arms of several backends, an arm that
// names a program itself or whose name ends as a side does, too many arms or rows.
Result<Study> two_sided(Study study, const StudySides& sides);

}  // namespace assay
