// Pairs cells of two sides, and sorts out those that can't be compared.
#pragma once

#include <string>
#include <vector>

#include "analysis/compare/parts.h"

namespace assay {

struct Pairing {
  std::vector<Stratum> strata;  // the base's, then those that only the candidate has
  std::vector<std::string> arms;
  std::vector<CellPair> pairs;  // by stratum, then arm
};
// Pairs two bundles' cells by stratum and arm. The samples outlive it.
Pairing pair_cells(const Samples& base, const Samples& cand);

// Leaves with `out` the results that need no figures: cells that one side lacks, that can't be
// compared, whose output broke or that ran otherwise. Returns the pairs that can be compared.
// `prompts_matter`: cells that answered different prompts can't.
std::vector<CellPair> sort_out(const std::vector<CellPair>& pairs, bool prompts_matter,
                               Comparison& out);

}  // namespace assay
