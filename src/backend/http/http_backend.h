// Servers of others as a backend: its worker is this program, which asks the server.
#pragma once

#include <filesystem>
#include <memory>

#include "backend/backend.h"

namespace assay {

// `program` serves `worker http`; `image`, if it isn't empty, is executed under that name
// (ChildSpec::image).
std::unique_ptr<Backend> make_http_backend(std::filesystem::path program,
                                           std::filesystem::path image = {});

}  // namespace assay
