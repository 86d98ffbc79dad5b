// Finds the files of a checkpoint folder that hold its weights.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace assay::engine {

inline constexpr std::string_view kSingleFile = "model.safetensors";
inline constexpr std::string_view kIndexFile = "model.safetensors.index.json";

// The index's tensor names with the shard, a plain file name, that holds each.
using WeightMap = std::map<std::string, std::string>;

// `object` names the index in errors. A shard's name that isn't a plain one (it could leave the
// folder) is an error.
Result<WeightMap> parse_weight_map(std::string_view json_text, std::string_view object);

struct WeightFiles {
  std::vector<std::filesystem::path> paths;  // in name order
  std::optional<WeightMap> weight_map;       // absent for a single file
};

// model.safetensors, or else the shards of the index. A folder that has neither is an error that
// names the files it has instead.
Result<WeightFiles> find_weight_files(const std::filesystem::path& folder);

}  // namespace assay::engine
