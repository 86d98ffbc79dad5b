// Findings on one screen: the study and its machine, warnings, the arm to take, and the
// circumstances that would change that choice.
#pragma once

#include <string>

#include "analysis/findings/findings.h"
#include "report/screen/fitter.h"

namespace assay {

// Object that the user named: a bundle, or a findings.json that may have none around it.
enum class ScreenOf { kBundle, kFindingsFile };

// At most kScreenLines lines of at most `columns` columns. Whatever has no room is counted
// ("and 12 more: --full") or ends in "...". The last lines name `path`, as the user did, and the
// report: that in the bundle, or how to make one of the file.
std::string render_screen(const Findings& findings, const std::string& path,
                          ScreenOf of = ScreenOf::kBundle, size_t columns = kScreenColumns);

}  // namespace assay
