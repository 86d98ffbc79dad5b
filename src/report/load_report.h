// Servers under load in words and tables.
#pragma once

#include <string>
#include <vector>

#include "analysis/findings/findings.h"
#include "report/document.h"

namespace assay {

// A sentence an arm, the study's order: the most requests a second within the bounds and how sure
// that is, and the next point that keeps them no more; without bounds the speed at the least load
// and at the most, and where more load gives no more. Empty: nothing was measured under load.
std::vector<std::string> load_sentences(const Findings& findings);

// "ttft 200 ms, itl 30 ms"; empty: no bounds.
std::string bounds_text(const ServiceBounds& bounds);
// A row a point and arm, for a screen.
Table load_table(const Findings& findings);
std::string load_legend(const Findings& findings);
// Everything with its intervals, and the rules behind it.
ReportSection load_section(const Findings& findings);

}  // namespace assay
