// Options that a user of other tools types: what they are called here.
#pragma once

#include <CLI/CLI.hpp>
#include <span>
#include <string>

namespace assay::cli {

// ` (did you mean "--device cuda"?)` of a word of the command line that the command doesn't know:
// an option of llama-bench, hyperfine and the like, or the nearest of its own. Empty: nothing is
// near.
std::string habit_hint(const CLI::App& command, std::span<char* const> words);

}  // namespace assay::cli
