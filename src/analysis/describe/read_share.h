// Finds how much of its device's speed an arm uses.
#pragma once

#include <optional>
#include <vector>

#include "analysis/findings/read_share.h"
#include "analysis/rows/samples.h"

namespace assay {

// The shares by stratum, then arm: of kv_decode, and on a GPU of every phase. Left out: arms whose
// worker tells no bytes, and those of which nobody measured the limit. A prompt's operations are
// the model's: an arm whose worker doesn't tell them has those of another arm of the stratum.
std::vector<ReadShare> read_shares(const Samples& samples);

// Median over the warm rows of the least bytes that had to be read, over the latency; absent: the
// worker tells no bytes.
std::optional<double> read_rate(const Group& group);

// True if the group's arm computes on a GPU, by its evidence.
bool on_gpu(const Group& group);

}  // namespace assay
