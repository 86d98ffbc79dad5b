// The scenarios of a study file: built-in names, prompt lengths of the user's, texts of the user's.
#pragma once

#include <vector>

#include "base/result.h"
#include "study/study.h"
#include "study/yaml_reader.h"

namespace assay {

inline constexpr int64_t kMaxTokens = 1'000'000;  // of one prompt, and of one generation

Result<std::vector<StudyScenario>> parse_scenarios(const YamlValue& scenarios);

}  // namespace assay
