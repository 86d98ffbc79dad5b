// Keys of an arm that its backend alone understands; they travel to the worker in `load.options`.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/records/json.h"
#include "base/result.h"
#include "study/study.h"
#include "study/yaml_reader.h"

namespace assay {

// One such key of one backend; another backend may have one of the same name.
struct ArmOption {
  std::string name;
  std::string backend;
  bool any_mode = false;  // false: only of modes that call a compiler
  Result<Json> (*read)(const YamlValue& value);
  bool whole = false;  // a list is one value of it, and makes no arms
};

std::span<const ArmOption> arm_options();

// Requests that a native arm under load computes at a time; every such arm has it.
inline constexpr const char* kSlotsOption = "slots";

// The file or folder that holds an arm's weights in the place of the model's own: the same model in
// other bits (study_quality.h).
inline constexpr const char* kQuantizationOption = "quantization";

// The value of an arm's `device`; empty: it has none.
std::string device_option(const StudyArm& arm);

// True if the arm computes on a GPU where there is one because it names no other device.
bool may_take_gpu(const StudyArm& arm);

// True if a mode, of any backend, asks for a compiler.
bool mode_compiles(std::string_view mode);

}  // namespace assay
