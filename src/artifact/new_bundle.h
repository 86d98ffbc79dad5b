// Checks of a new bundle's place, for commands that work for long before they write the bundle.
#pragma once

#include <filesystem>

#include "base/result.h"

namespace assay {

// The check that BundleWriter::create() begins with. bad_input: a folder that isn't empty, a file,
// a place inside a bundle.
Status check_new_bundle(const std::filesystem::path& folder);
// bad_input: a place inside a bundle.
Status check_is_in_no_bundle(const std::filesystem::path& folder);

}  // namespace assay
