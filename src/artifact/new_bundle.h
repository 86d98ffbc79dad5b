// Whether a bundle may be made at a place, for commands that work for long before they come to it.
#pragma once

#include <filesystem>

#include "base/result.h"

namespace assay {

// As BundleWriter::create() asks before it makes anything: bad_input of a folder that isn't empty,
// of a file, and of a place inside a bundle.
Status check_new_bundle(const std::filesystem::path& folder);
// bad_input of a place inside a bundle.
Status check_is_in_no_bundle(const std::filesystem::path& folder);

}  // namespace assay
