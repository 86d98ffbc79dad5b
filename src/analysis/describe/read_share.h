// Finds how much of its memory's speed decoding uses.
#pragma once

#include <optional>
#include <vector>

#include "analysis/findings/read_share.h"
#include "analysis/rows/samples.h"

namespace assay {

// The shares by stratum, then arm. Left out: arms whose worker tells no bytes, and those of which
// nobody measured the limit.
std::vector<ReadShare> read_shares(const Samples& samples);

// Median over the warm rows of the least bytes that had to be read, over the latency; absent: the
// worker tells no bytes.
std::optional<double> read_rate(const Group& group);

}  // namespace assay
