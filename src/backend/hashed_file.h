// A file that an arm names, by its bytes.
#pragma once

#include <filesystem>

#include "base/records/json.h"

namespace assay {

// {"path", "sha256"}; the hash is null if the file can't be read.
Json hashed_file(const std::filesystem::path& path);

}  // namespace assay
