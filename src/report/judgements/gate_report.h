// Gates for people, spreadsheets, programs and a paper's appendix.
#pragma once

#include <string>

#include "base/tables/table.h"
#include "gates/judge.h"
#include "report/report.h"
#include "report/screen/fitter.h"

namespace assay {

// kTable: one screen of at most kScreenLines lines of so many columns, failed checks first.
// kMarkdown: the gates, of several bundles each one's, the claims, and every check with the members
// that decide it, as tables. kCsv: one line a check. kJson: everything.
std::string render_judgement(const Judgement& judgement, OutputFormat format,
                             size_t columns = kScreenColumns);

// The outcome, the five gates' verdicts, what was found, and each bundle's demands.
Document gate_document(const Judgement& judgement);

// The gates of one bundle as a reviewer's checklist, for its report.
ReportSection gate_section(const Judgement& judgement);

}  // namespace assay
