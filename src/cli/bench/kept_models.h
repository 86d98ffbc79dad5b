// The models with random weights that `assay bench` makes once and keeps.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

namespace assay::cli {

// $ASSAY_MODEL_CACHE, else assay/models in the user's cache folder. Empty: the user has none.
std::filesystem::path kept_models_folder();

struct KeptModel {
  std::string name;  // the architecture
  std::filesystem::path path;
  uint64_t bytes = 0;
  bool unfinished = false;  // left by a process that was killed as it made one, or being made
};

// The kept models by name. An entry that isn't a folder of an architecture's name is somebody
// else's and isn't listed; no link is followed. No folder: none.
Result<std::vector<KeptModel>> kept_models();

// Removes those models.
Status remove_kept_models(const std::vector<KeptModel>& models);

}  // namespace assay::cli
