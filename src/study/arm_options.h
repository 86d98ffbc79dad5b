// Keys of an arm that its backend alone understands; they travel to the worker in `load.options`.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "study/yaml_reader.h"

namespace assay {

// One such key, of a backend's compiled modes.
struct ArmOption {
  std::string name;
  std::string backend;
  Result<Json> (*read)(const YamlValue& value);
};

std::span<const ArmOption> arm_options();

}  // namespace assay
