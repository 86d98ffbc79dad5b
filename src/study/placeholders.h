// {name} in the texts of an arm of backend command, the place of a cell's own value.
//
// Only braces around a word of small letters and '_' are placeholders, so that JSON passes as it
// is; {{word}} stands for the text {word}.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace assay {

// model (the study's path or arch), dtype, mode, cache, dynamic, threads, phase, prompt_tokens,
// new_tokens, batch, samples, seed; checkout: the folder of the arm's revision; side: the text
// given to `compare --run` for this side.
std::span<const std::string> placeholder_names();

// The text's placeholders in its order. bad_input "expected ..., found {word}" for an unknown one.
Result<std::vector<std::string>> placeholders_of(std::string_view text);

// A placeholder without a value is left as it stands.
std::string fill_placeholders(std::string_view text,
                              const std::map<std::string, std::string>& values);

}  // namespace assay
