// The models that `assay bench` is given: checkpoints, or architectures of which it makes one.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "report/bench/bench_rows.h"

namespace assay::cli {

// A folder or a file is a checkpoint; any other word is an architecture of `assay model make`,
// whose random weights (seed 0, as published) are made once, in $ASSAY_MODEL_CACHE or assay/models
// in the user's cache folder, and stay there. Names are unique. bad_input: neither of the two.
Result<std::vector<BenchedModel>> find_models(const std::vector<std::string>& words);

}  // namespace assay::cli
