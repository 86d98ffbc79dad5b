// Bundles that `assay import` made of other tools' files: what such files let a comparison show.
#pragma once

#include <set>
#include <string>

#include "analysis/compare/compare.h"
#include "artifact/bundle.h"

namespace assay {

bool is_imported(const Bundle& bundle);

// Axes on which two such bundles may differ without a word: the code is what is compared.
std::set<std::string> axes_of_other_tools();

// True if one such bundle states this axis and the other doesn't, although they were built of other
// code: a build has settings that an older one doesn't know.
bool is_of_newer_build(const AxisDifference& difference, const std::vector<AxisDifference>& all);

// Judges cells of one process a side by their rows, since a tool's file has one; if the files have
// means alone, cells have a ratio and no verdict.
CompareOptions options_for_other_tools(const Bundle& base, const Bundle& cand,
                                       CompareOptions options);

// The sentence that stands beside every verdict of such a comparison.
std::string caveat_of_other_tools(const Comparison& comparison);

}  // namespace assay
