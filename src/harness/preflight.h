// Checks of a study that find its faults before anything is measured.
#pragma once

#include <vector>

#include "backend/backend.h"
#include "harness/prompts.h"
#include "study/plan.h"

namespace assay {

struct Preflight {
  // [model][scenario][prompt], as far as can be known now: a text that no backend has counted has
  // length 0.
  std::vector<std::vector<std::vector<PromptLength>>> lengths;
  std::vector<uint64_t> weight_bytes;   // [model]; 0: unknown
  std::vector<ArmReadiness> readiness;  // [arm]
};

// bad_input that names the object: an unknown backend, a mode or cache that a backend hasn't, a
// model that can't be loaded, prompt and new tokens beyond the model's positions.
// environment_error if no arm can run here; an arm that can't beside others that can is an outcome
// of the run.
Result<Preflight> check_study(const Study& study, const BackendSet& backends);

// Checks that the workers of these arms can be started at all: environment_error that names the
// missing thing, a place for temporary files or room for descriptors.
Status check_room(const Study& study);

}  // namespace assay
