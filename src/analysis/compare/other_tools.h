// Bundles that `assay import` made of other tools' files: what such files let a comparison show.
#pragma once

#include <set>
#include <span>
#include <string>

#include "analysis/compare/compare.h"
#include "artifact/bundle.h"

namespace assay {

bool is_imported(const Bundle& bundle);
bool all_imported(std::span<const Bundle> base, std::span<const Bundle> cand);

// Axes on which two such bundles may differ without a word: the code is what is compared.
std::set<std::string> axes_of_other_tools();

// True if one such bundle states this axis and the other doesn't, although they were built of other
// code: a build has settings that an older one doesn't know.
bool is_of_newer_build(const AxisDifference& difference, const std::vector<AxisDifference>& all);

// Judges cells of one process a side by their rows, since a tool's file has one; if a file has
// means alone, cells have a ratio, and a verdict only where several files a side show a spread.
CompareOptions options_for_other_tools(std::span<const Bundle> base, std::span<const Bundle> cand,
                                       CompareOptions options);

// The sentence that stands beside every verdict of such a comparison, of one file a side or
// several.
std::string caveat_of_other_tools(const Comparison& comparison);

}  // namespace assay
