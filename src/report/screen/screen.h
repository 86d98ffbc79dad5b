// Findings on one screen: what was measured and where, what voids or weakens it, which arm to take,
// and what would change that choice.
#pragma once

#include <string>

#include "analysis/findings/findings.h"

namespace assay {

inline constexpr size_t kScreenLines = 40;
inline constexpr size_t kScreenColumns = 100;

// At most kScreenLines lines of at most kScreenColumns columns. Whatever has no room is counted
// ("and 12 more: --full") or ends in "...". The last lines name `bundle`, as the user did, and the
// report files in it.
std::string render_screen(const Findings& findings, const std::string& bundle);

}  // namespace assay
