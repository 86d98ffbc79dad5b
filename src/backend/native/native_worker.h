// The native engine as a worker: phases timed around engine::Session and nothing else.
#pragma once

#include <memory>
#include <string>

#include "backend/worker.h"

namespace assay {

// Serves one model of one arm; `version` is the program's.
std::unique_ptr<Worker> make_native_worker(std::string version);

}  // namespace assay
