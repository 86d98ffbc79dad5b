// Paths of the torch worker and of the interpreters for it on this machine.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "study/study.h"

namespace assay {

// A variable of the environment; absent: not set, or empty.
using EnvironmentReader = std::function<std::optional<std::string>(const std::string& name)>;
EnvironmentReader process_environment_reader();

// The folder that holds torch/worker.py: $ASSAY_WORKERS, else share/assay/workers of the
// installation that `program` belongs to, else workers/ of a folder above it (a build in the source
// tree). environment_error that names them.
Result<std::filesystem::path> find_workers(const std::filesystem::path& program,
                                           const EnvironmentReader& environment);

// The interpreter of an arm: its `python` (a path, a name in PATH, or $NAME: that variable's
// value), else $ASSAY_TORCH_PYTHON, else the newest environment that scripts/torch-env finished.
// environment_error that names the places searched.
Result<std::string> find_python(const StudyArm& arm, const EnvironmentReader& environment);

}  // namespace assay
