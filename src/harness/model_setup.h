// A run's facts about a model before it times anything: vocabulary, prompts, hash, parity.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "artifact/bundle.h"
#include "harness/cell_evidence.h"
#include "harness/context.h"
#include "harness/prompts.h"
#include "harness/workers.h"

namespace assay {

struct ModelSetup {
  // Absent if no arm's worker could load the model or tokenise its texts: its cells can't be run.
  std::optional<ModelPrompts> prompts;
  std::string last_failure;  // of a worker that was started or asked; empty: there was none
  std::string model_hash;    // by the first worker that knew it; empty: none did
};

// With parity before timing every arm answers in processes of its own, which end before timing
// starts: anything that parity compiles, allocates or warms up must not be there when the arm is
// measured. Writes parity.json of every cell of the model about which something can be said, and
// asks nothing about those that have one (`recorded`, kept up to date). With parity after timing,
// or all of it recorded, only as many of `workers` are started as it takes to learn the vocabulary
// and the texts' tokens. The output of parity's processes goes to the log of the arm's first cell.
// Absent: the run was interrupted. Errors are the bundle's, and an environment_error if no arm's
// worker could even be started.
Result<std::optional<ModelSetup>> set_up_model(const Study& study, const Plan& plan, size_t model,
                                               BundleWriter& bundle, RunContext& context,
                                               Workers& workers, CellEvidence& evidence,
                                               std::set<size_t>& recorded);

}  // namespace assay
