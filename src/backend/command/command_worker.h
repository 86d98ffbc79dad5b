// A benchmark command behind the worker protocol: one process of a cell runs it once, and each
// sample that it prints is a repetition.
#pragma once

#include <memory>
#include <string>

#include "backend/worker.h"
#include "base/process/subprocess.h"

namespace assay {

// The command runs when the first repetition is asked for. Its output goes on to this process's
// stderr.
std::unique_ptr<Worker> make_command_worker(std::string version, Spawner& spawner);

}  // namespace assay
