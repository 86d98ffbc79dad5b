// Measurements that a rule of somebody else's can rest on, and the requests that it serves beyond
// them.
#pragma once

#include <vector>

#include "analysis/rows/samples.h"
#include "routing/policy.h"

namespace assay {

struct RuleBasis {
  // Indexes into Samples::strata, by new tokens and length: strata whose requests the rule serves,
  // or that it names as its evidence. If the rule begins or ends between two measured lengths or
  // numbers of new tokens, also the strata at the other end of that gap, since an arm serves a gap
  // only if both its ends prove it.
  std::vector<size_t> strata;
  // Requests that the rule serves outside of everything measured, with the verdict kNotMeasured.
  // Empty for a rule that takes no arm or the policy's own fallback, which serves there in any
  // case.
  std::vector<RuleEvidence> beyond;
};

RuleBasis basis_of_rule(const PolicyRule& rule, const Policy& policy, const Samples& samples);

}  // namespace assay
