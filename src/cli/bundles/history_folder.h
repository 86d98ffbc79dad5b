// A folder of bundles that one program left over time.
#pragma once

#include <filesystem>
#include <set>
#include <string>

#include "analysis/compare/history.h"
#include "artifact/bundle.h"

namespace assay::cli {

// The sealed bundles in `folder`, in the order in which they were started. The candidate itself is
// left out, wherever it lies; so is, with a note on stderr, a bundle that differs by another
// machine or by anything else than the code and the axes that `vary` names. bad_input: no such
// folder, a bundle that can't be read, a run that is there twice or is the candidate's.
Result<History> read_history(const std::filesystem::path& folder, const Bundle& base,
                             const Bundle& cand, const std::set<std::string>& vary);

}  // namespace assay::cli
