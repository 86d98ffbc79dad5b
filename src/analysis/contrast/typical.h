// The ratio of two arms' typical calls, by pairs.
#pragma once

#include <optional>

#include "analysis/contrast/contrast.h"

namespace assay {

// The median over repetitions of the ratio of both arms' times in the same repetition, with the
// interval that order statistics give: ranks as far from the middle as the binomial distribution of
// one half says (Thompson 1936), times the pair's widening. Where processes are the unit it is the
// geometric mean over rounds of the rounds' medians, with that of t over rounds: a process' medians
// are all alike as slow. Absent where arms aren't paired, and where so few pairs have no such
// interval (5 repetitions, 1 round). `confidence`: of the interval.
std::optional<SpreadRatio> typical_ratio(const ContrastInputs& in, const GroupPair& pair,
                                         const stats::Widening& widening, double confidence);

}  // namespace assay
