// The identity of a measurement: the tuple that must match before two figures may be compared, and
// the long form with everything that may explain a difference.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/records/json.h"
#include "identity/build_info.h"
#include "identity/host.h"

namespace assay {

// The axes of the benchmark identity that all arms of a run share; cache kind and compile mode are
// the arm's own. An axis that isn't known is absent.
struct Identity {
  std::string device;           // processor model with family, model, stepping; number of CPUs
  std::string code_generator;   // of the code that runs, with its version: the compiler
  std::string framework_build;  // "assay 0.1.0 1a2b3c4d5e6f Release"
  std::optional<std::string> code_sha;  // whole, with "-dirty"
};

// The arm's axes. The last four are empty where they are the run's.
struct ArmIdentity {
  std::string arm;
  std::string cache;
  std::string compile_mode;
  std::string device{};
  std::string code_generator{};
  std::string framework_build{};
  std::string code_sha{};
};

Identity make_identity(const Host& host, const BuildInfo& build);
// {"device", "code_generator", "framework_build", "code_sha", "arms": {NAME: {"cache",
// "compile_mode", and those of the first four that are the arm's own}}}
Json identity_to_json(const Identity& identity, std::span<const ArmIdentity> arms);

// The long form: {"schema", "host", "build", "program_sha256", "libraries", "threads",
// "environment_variables", "warnings"}. "warnings" are sentences for the reader of a report. The
// loader of the models adds their hashes. Hashes the loaded libraries: about 0.1 s, once a run.
// `threads` is the number that the measurement uses; 0: as many as the process may run on.
Json collect_environment(const MachineFiles& files, int64_t threads);

// Reasons to doubt figures of this build, one sentence each.
std::vector<std::string> build_warnings(const BuildInfo& build);

// NAME=VALUE of `environ` whose names change how fast the program runs (OMP_*, DNNL_*, ...); no
// others, because the rest is the user's own business.
Json relevant_variables(std::span<const std::string> environ);

}  // namespace assay
