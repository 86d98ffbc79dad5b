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

// The study with two neighbouring arms in the place of each, which differ only by the program that
// serves them: an assay executable for native arms, a Python interpreter for torch's; for commands
// a revision of their checkout, or the text that stands for {side}. From here on repetitions can be
// paired: the order is interleaved, and nothing stops early. bad_input: arms of several backends,
// an arm that names a program itself or whose name ends as a side does, too many arms or rows.
Result<Study> two_sided(Study study, const StudySides& sides);

}  // namespace assay
