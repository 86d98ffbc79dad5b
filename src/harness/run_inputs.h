// The files that a study's run is bound to: models, the arms' programs, the program's libraries.
#pragma once

#include <string>
#include <vector>

#include "harness/preflight.h"
#include "identity/bound_files.h"

namespace assay {

// The owner of a model's files, as messages and environment.json name it.
std::string model_owner(const StudyModel& model);

// The files in their present state, bound once readiness() has run for each arm. `environment`: of
// collect_environment(); its libraries are bound too. The program itself needs no check: workers
// are started from its image. bad_input as BoundFiles::bind().
Result<BoundFiles> bind_inputs(const Study& study, const Preflight& preflight,
                               const BackendSet& backends, const Json& environment);

// Checks that the program and the files under "inputs" of a bundle's first environment are those
// of this one; as check_bound_alike(). An environment of an older program has none.
Status check_same_inputs(const Json& first, const Json& now, const std::vector<std::string>& known);

}  // namespace assay
