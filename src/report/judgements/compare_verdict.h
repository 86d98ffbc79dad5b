// The conclusions from a comparison's tables, in sentences.
#pragma once

#include <string>
#include <vector>

#include "analysis/compare/demands.h"

namespace assay {

std::vector<std::string> verdict_sentences(const Comparison& comparison,
                                           const CompareDemands& demands);

// "FAILS", "passes", or "NOTHING JUDGED".
std::string verdict_word(const Comparison& comparison, const CompareDemands& demands);

// The whole verdict in a sentence: "FAILS: slower: eager on prefill, ...: 1.50 [1.48, 1.52] of the
// base's time, and 2 more".
std::string verdict_headline(const Comparison& comparison, const CompareDemands& demands);

// The lines that a comparison begins with: the headline, a clause with the ratio of each phase, and
// a caveat if there is one.
std::vector<std::string> verdict_top(const Comparison& comparison, const CompareDemands& demands);

// "+7.29"; beyond ten times nobody reads the digits, and a table would burst.
std::string signed_percent_text(double share);

}  // namespace assay
