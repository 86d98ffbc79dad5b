// The native backend as the harness sees it: `assay worker native` in a child process.
#pragma once

#include <filesystem>
#include <memory>

#include "backend/backend.h"

namespace assay {

// `program` is the assay executable that serves as the worker; `image`, if it isn't empty, is
// executed under that name (ChildSpec::image).
std::unique_ptr<Backend> make_native_backend(std::filesystem::path program,
                                             std::filesystem::path image = {});

}  // namespace assay
