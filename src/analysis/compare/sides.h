// The two sides of one bundle against each other, as `assay compare --run` measured them.
#pragma once

#include <string>

#include "analysis/compare/compare.h"

namespace assay {

// A regression is slower by more than this share: pairs of repetitions show smaller differences
// than two bundles can.
inline constexpr double kSidesMargin = 0.002;

// True if the bundle is of a study of two sides.
bool has_sides(const Bundle& bundle);

// Every arm of the base beside its own of the candidate, by pairs of repetitions (pairs.h): means
// and, as a second alarm, typical calls. Both sides ran at the same time on one machine, so that
// nothing lies between two runs: an alarm has to beat the pairs' own error. A cell of one pair of
// processes isn't judged unless `options` allow it; then by its pairs. bad_input: the bundle has no
// sides; the error of a parity record without a verdict.
Result<Comparison> compare_sides(const Bundle& bundle, const CompareOptions& options);

}  // namespace assay
