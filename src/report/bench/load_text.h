// Load measured by `assay bench --server`, in the rows that load generators print.
#pragma once

#include <string>

#include "analysis/findings/findings.h"
#include "base/result.h"
#include "report/bench/bench_text.h"

namespace assay {

// table and md: the sentences, then a row a figure and a column a point, with the names that vLLM's
// benchmark gives them; the means of the runs with half their 95 % interval. csv: the same with
// plain numbers. json: the findings' member "load". bad_input: another format.
Result<std::string> render_load_bench(const Findings& findings, BenchFormat format);

}  // namespace assay
