// The one place that opens a bundle for reading: its callers get the sealed content, or an error. A
// sealed bundle is held against its manifest: every listed file is there, with its length and hash,
// be it read or not; the commits name the same files and hashes; there are as many rows as they and
// the completion say. Each file is read once for that. A file that was added and that nobody reads
// is left to verify_bundle().
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "artifact/bundle.h"
#include "base/result.h"

namespace assay {

// A unit of the plan whose rows are committed.
struct CommittedUnit {
  int64_t index = 0;       // in the plan
  int64_t rows_after = 0;  // of the bundle, once it was committed
};

// Like read_bundle() and read_bundle_or_rows(), and `units` gets the units in the order of their
// commits; kept rows have none.
Result<Bundle> read_bundle(const std::filesystem::path& folder, std::vector<CommittedUnit>& units);
Result<Bundle> read_bundle_or_rows(const std::filesystem::path& folder,
                                   std::vector<CommittedUnit>& units);

// Like verify_bundle() of its folder, without a second reading of a sealed bundle's files.
Result<std::vector<VerifyProblem>> verify_bundle(const Bundle& read);

}  // namespace assay
