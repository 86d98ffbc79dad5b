// Execution of an arm: did it run as its mode says?
#pragma once

#include <string_view>

namespace assay {

// Execution of an arm on one stratum, by its rows and its worker's evidence: it earned the word
// "compiled" or didn't.
enum class Execution {
  kEager,      // it never asked for a compiler in this phase
  kCompiled,   // evidence that it ran compiled, and no call of a timed row ran eager
  kPartly,     // some timed rows had calls that ran eager
  kFellBack,   // all of them had, be it one call a row
  kOtherMode,  // compiled, and not as its mode promises: without CUDA graphs, say
  kLabelOnly,  // its worker says that no compiler was called
  kUnproven,   // nobody proved anything
};
std::string_view execution_name(Execution execution);

}  // namespace assay
