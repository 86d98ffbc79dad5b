// The scenarios of a study file: built-in names, prompt lengths of the user's, texts of the user's.
#pragma once

#include <span>
#include <vector>

#include "base/records/phase.h"
#include "base/result.h"
#include "study/study.h"
#include "study/yaml_reader.h"

namespace assay {

inline constexpr int64_t kMaxTokens = 1'000'000;  // of one prompt, and of one generation

// A list of phases, out of `known`; each at most once, in any order.
Result<std::vector<Phase>> parse_phases(const YamlValue& value, std::span<const Phase> known);

// A list of integers from 1 to `max`, each at most once.
Result<std::vector<int64_t>> parse_integers(const YamlValue& value, int64_t max);

// `phases`: the study's.
Result<std::vector<StudyScenario>> parse_scenarios(const YamlValue& scenarios,
                                                   std::span<const Phase> phases);

}  // namespace assay
