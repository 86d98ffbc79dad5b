// The backends that the program has, for the commands that run or judge arms.
#pragma once

#include "backend/backend.h"

namespace assay::cli {

BackendSet make_backends();

}  // namespace assay::cli
