// The conclusions from a comparison's tables, in sentences.
#pragma once

#include <string>
#include <vector>

#include "analysis/compare/compare.h"

namespace assay {

// `on_regression`: regressions are said to fail, as with --fail-on-regression.
std::vector<std::string> verdict_sentences(const Comparison& comparison, bool on_regression);

// "FAILS", "passes", or "not decided" where nothing fails and no cell has a verdict.
std::string verdict_word(const Comparison& comparison, bool on_regression);

// "+7.29"; beyond ten times nobody reads the digits, and a table would burst.
std::string signed_percent_text(double share);

}  // namespace assay
