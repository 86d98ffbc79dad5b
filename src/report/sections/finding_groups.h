// Named findings of one kind as one line about the worst of them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "analysis/findings/findings.h"

namespace assay {

// Findings of one kind and severity, over phases and arms.
struct FindingGroup {
  const Finding* worst = nullptr;  // the first of the largest
  size_t findings = 0;
  size_t cells = 0;   // those about an arm on a stratum: how many of these
  size_t strata = 0;  // the others about a stratum
};

// The groups in the order in which the kinds appear in `findings.named`: warnings first, and of
// those the ones that void a comparison before the ones that weaken it.
std::vector<FindingGroup> finding_groups(const Findings& findings);

// "drift (7 of 60 cells, worst: kv_decode single_long static): goes from ...".
std::string group_line(const Findings& findings, const FindingGroup& group);

// " kv_decode single_long static": the phase, stratum and arm that the finding has; may be empty.
std::string finding_place(const Findings& findings, const Finding& finding);

}  // namespace assay
