// A bundle to findings.
#pragma once

#include "analysis/findings/findings.h"
#include "artifact/bundle.h"
#include "base/process/thread_pool.h"

namespace assay {

// Cost is linear in rows. A bundle that isn't complete is analysed and says so in a finding. A
// parity record without a verdict: bad_input; one whose verdict is null counts as unchecked. The
// same bundle and options give the same findings with any pool, or none.
Result<Findings> analyze(const Bundle& bundle, const AnalysisOptions& options, ThreadPool* pool);

// The part of analyze() that holds arms against the baseline: strata, outcomes, contrasts and void
// decisions are the same, and latencies say whether parity failed. All else is absent.
Result<Findings> analyze_contrasts(const Bundle& bundle, const AnalysisOptions& options,
                                   ThreadPool* pool);

}  // namespace assay
