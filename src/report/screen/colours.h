// The screen of findings in colours, for terminals that have them.
#pragma once

#include <string>

namespace assay {

// Verdicts green, yellow or red, headings bold, and warnings yellow. Without its escape sequences
// it is the same text.
std::string with_colours(const std::string& screen);

}  // namespace assay
