// Ranks, ties sharing their mean.
#pragma once

#include <span>
#include <vector>

namespace assay::stats {

// The rank of each value, from 1, in the argument's order; equal values get the mean of theirs.
// O(n log n).
std::vector<double> mid_ranks(std::span<const double> values);

}  // namespace assay::stats
