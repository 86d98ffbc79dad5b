// Gates for people, spreadsheets, programs and a paper's appendix.
#pragma once

#include <string>

#include "base/tables/table.h"
#include "gates/judge.h"
#include "report/report.h"

namespace assay {

// kTable: one screen of at most kScreenLines lines of kScreenColumns columns, failed checks first.
// kMarkdown: the gates, of several bundles each one's, the claims, and every check with the members
// that decide it, as tables. kCsv: one line a check. kJson: everything.
std::string render_judgement(const Judgement& judgement, OutputFormat format);

// The outcome of all gates in sentences; the first one sums up the others.
std::vector<std::string> gate_outcome(const Judgement& judgement);
// Each bundle's demands with the members that decide them, and its claims; then those of all
// together.
std::vector<ReportSection> gate_demands(const Judgement& judgement);

// The gates of one bundle as a reviewer's checklist, for its report.
ReportSection gate_section(const Judgement& judgement);

}  // namespace assay
