// The study's key `quality`, and arms whose weights aren't the model's own.
#pragma once

#include "base/result.h"
#include "study/study.h"
#include "study/yaml_reader.h"

namespace assay {

// The file or folder of an arm's weights, as written: key `quantization`. Empty: the model's own.
std::string quantization_option(const StudyArm& arm);

// The arm with whose greedy tokens this one's are compared: the baseline, or the first arm with the
// same `quantization` where that isn't the baseline's. Other weights choose other tokens by right;
// the same weights don't.
size_t parity_reference(const Study& study, size_t arm);

// `quality: false`, or a map of `windows`, `window` and `text`; `value` is absent where the file
// has no such key. An error if no arm has weights of its own.
Status parse_quality(const std::optional<YamlValue>& value, Study& study);

}  // namespace assay
