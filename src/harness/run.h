// Runs a study's plan into a bundle, from the checks to the seal.
#pragma once

#include <filesystem>
#include <map>

#include "artifact/bundle.h"
#include "harness/context.h"
#include "harness/preflight.h"
#include "study/plan.h"

namespace assay {

struct RunRequest {
  const Study& study;
  const Plan& plan;
  const Preflight& preflight;  // of this study
  BundleHeader header;         // plan_hash and study are filled in by run_study()
  std::filesystem::path folder;
  bool resume = false;
};

struct RunSummary {
  bool interrupted = false;  // the bundle is not sealed; resume continues it
  int64_t rows = 0;          // committed, earlier runs' included
  std::map<RowStatus, int64_t> rows_by_status;
};

// A worker's failure is never an error of the run. Errors: the bundle can't be made, resumed or
// written; on resume a model whose hash is another one than that of the committed rows.
Result<RunSummary> run_study(RunRequest request, RunContext& context);

// The study as manifest.json keeps it: {name, baseline, seed, order, warmup, repetitions,
// processes, arms}, and if there are any "require" and "sides".
Json study_summary(const Study& study);

}  // namespace assay
