// A bundle's result in one sentence.
#pragma once

#include <string>

#include "analysis/findings/findings.h"

namespace assay {

// "prefill: compiled is the fastest arm in 3 of 4 strata, at 0.62 to 0.71 [0.60, 0.73] of eager's
// time; kv_decode: ...; 48 of 432 rows are lost." Each phase is told by the answer that most of its
// strata have (report/answers.h); among equals, by the one that decides most.
std::string headline(const Findings& findings);

}  // namespace assay
