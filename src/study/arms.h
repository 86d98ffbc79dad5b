// The arms of a study file: which backends and modes there are, and how a list in an arm expands.
#pragma once

#include <vector>

#include "base/result.h"
#include "study/study.h"
#include "study/yaml_reader.h"

namespace assay {

inline constexpr size_t kMaxArms = 64;

// The `arms` of a study file, each list in an arm expanded to one arm a value; names are unique.
Result<std::vector<StudyArm>> parse_arms(const YamlValue& arms);

}  // namespace assay
