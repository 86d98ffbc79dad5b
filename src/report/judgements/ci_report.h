// A comparison for services that run builds: JUnit's XML, and the workflow commands of GitHub
// Actions.
#pragma once

#include <string>

#include "analysis/compare/demands.h"

namespace assay {

// One test suite a phase, a test case a cell with the candidate's mean time in seconds: it fails
// with the demands that it doesn't meet, and is skipped where it isn't compared or has no verdict.
// The last case is the verdict on all: it fails where a demand isn't met, or where nothing was
// judged although something was demanded. Its output is what the screen begins with, a caveat
// included.
std::string render_junit(const Comparison& comparison, const CompareDemands& demands);

// "::error title=assay compare::slower: ...": a line for each demand that isn't met, then the
// outcome with its caveat as a notice, or a warning where nothing was judged.
std::string render_workflow_commands(const Comparison& comparison, const CompareDemands& demands);

}  // namespace assay
