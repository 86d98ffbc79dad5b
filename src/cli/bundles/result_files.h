// Results that a user names: a bundle's folder, or another tool's file.
#pragma once

#include <string>

#include "artifact/bundle.h"

namespace assay::cli {

// The bundle in the folder `path`; of a file that `assay import` reads, the bundle that it makes of
// it, under the file's name. The errors of both.
Result<Bundle> read_bundle_or_results(const std::string& path);

}  // namespace assay::cli
