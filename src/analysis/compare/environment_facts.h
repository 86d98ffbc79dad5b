// Statements of environment.json on the axes that a run as a whole has: threads, environment
// variables, libraries and host.
#pragma once

#include <map>
#include <string>

#include "base/records/json.h"

namespace assay {

// Axis to member to value; an axis of one value ("threads") has it under the member "". Values that
// aren't stated are empty, and members of the host are always there.
using EnvironmentFacts = std::map<std::string, std::map<std::string, std::string>>;
EnvironmentFacts environment_facts(const Json& environment);

}  // namespace assay
