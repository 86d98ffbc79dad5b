// Finds a checkpoint's weight files; reads the index of a sharded one.
#include "engine/model/weight_files.h"

#include <set>

#include "base/files/files.h"
#include "base/records/json.h"

namespace assay::engine {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxIndexBytes = size_t{1} << 20;  // the largest published ones have 100 kB

bool is_plain_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos;
}

std::unexpected<Error> no_weights(const fs::path& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    return bad_input("{}: expected a checkpoint folder, found none", folder.string());
  }
  for (const char* name : {"pytorch_model.bin", "pytorch_model.bin.index.json"}) {
    if (fs::exists(folder / name, error)) {
      return bad_input(
          "{}: expected safetensors weights ({}), found {}, a pickle, which isn't read",
          folder.string(), kSingleFile, name);
    }
  }
  return bad_input("{}: expected {} or {}, found neither", folder.string(), kSingleFile,
                   kIndexFile);
}

}  // namespace

Result<WeightMap> parse_weight_map(std::string_view json_text, std::string_view object) {
  if (json_text.size() > kMaxIndexBytes) {
    return bad_input("{}: expected at most {} bytes, found {}", object, kMaxIndexBytes,
                     json_text.size());
  }
  ASSAY_TRY(const Json json, parse_json(json_text, object));
  if (!json.is_object() || !json.contains("weight_map") || !json["weight_map"].is_object()) {
    return bad_input("{}: expected an object at \"weight_map\", found none", object);
  }
  WeightMap map;
  for (const auto& [name, shard] : json["weight_map"].items()) {
    if (!shard.is_string() || !is_plain_name(shard.get<std::string>())) {
      return bad_input("{}: expected the name of a file in this folder for {}, found {}", object,
                       json_quoted(name), to_json_line(shard).substr(0, 80));
    }
    map.emplace(name, shard.get<std::string>());
  }
  if (map.empty()) return bad_input("{}: expected tensors in \"weight_map\", found none", object);
  return map;
}

Result<WeightFiles> find_weight_files(const fs::path& folder) {
  WeightFiles files;
  std::error_code error;
  if (fs::exists(folder / kSingleFile, error)) {
    files.paths.push_back(folder / kSingleFile);
    return files;
  }
  const fs::path index = folder / kIndexFile;
  if (!fs::exists(index, error)) return no_weights(folder);
  ASSAY_TRY(const std::string text, read_file(index));
  ASSAY_TRY(files.weight_map, parse_weight_map(text, index.string()));
  std::set<std::string> shards;
  for (const auto& [name, shard] : *files.weight_map) shards.insert(shard);
  for (const std::string& shard : shards) files.paths.push_back(folder / shard);
  return files;
}

}  // namespace assay::engine
