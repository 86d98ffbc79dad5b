// Why p99 is high: each arm's slow calls, and what was recorded beside them.
#pragma once

#include "analysis/findings/findings.h"
#include "report/document.h"

namespace assay {

// The longest tail of each phase in a sentence, and every group that has a slow call as a row.
Document slow_calls_document(const Findings& findings);
// The same as a part of the bundle's report; without content where no call was slow.
ReportSection slow_calls_section(const Findings& findings);

}  // namespace assay
