// The demands that a comparison has to meet for CI to pass.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/compare/compare.h"

namespace assay {

struct CompareDemands {
  // No cell is slower by more than the margin, loses more rows, or gives other output.
  bool regression = false;
  // Every cell has a verdict other than inconclusive.
  bool undecided = false;
  // Every cell would show a difference of this share of the base's time (its mde).
  std::optional<double> resolution = {};

  bool any() const { return regression || undecided || resolution.has_value(); }
};

enum class CompareOutcome {
  kPasses,
  kNothingJudged,  // nothing fails, because no cell has a verdict: nobody looked
  kFails,
};
std::string_view compare_outcome_name(CompareOutcome outcome);  // passes | nothing_judged | fails

// One sentence for each demand that isn't met. Cells that the candidate lacks fail always, and so
// does a side of `compare --run` that kept no row.
std::vector<std::string> unmet_demands(const Comparison& comparison, const CompareDemands& demands);
CompareOutcome compare_outcome(const Comparison& comparison, const CompareDemands& demands);

}  // namespace assay
