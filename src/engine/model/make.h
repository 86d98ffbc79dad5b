// Random checkpoints in the Hugging Face layout, with the dimensions of real models.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

#include "base/files/folder.h"
#include "base/result.h"
#include "engine/tensor.h"

namespace assay::engine {

struct MakeOptions {
  uint64_t seed = 0;
  std::optional<DType> dtype = {};  // absent: as the architecture is published
  uint64_t shard_bytes =
      5'000'000'000;  // a model above this is split, as transformers' default does
};

struct MadeCheckpoint {
  uint64_t parameters = 0;
  uint64_t weight_bytes = 0;
  DType dtype = DType::kF32;
  size_t weight_files = 0;
};

// Writes config.json, generation_config.json, tokenizer.json and the weights into `folder`, which
// must not exist or be empty (bad_input otherwise, as for an unknown architecture or a folder that
// can't be written). The same arguments give the same bytes on every machine. Streams: memory stays
// below 100 MB for models of any size. config.json is written last, so that an interrupted
// folder is never taken for a checkpoint; after a failure (a full disk) the written files are
// removed.
Result<MadeCheckpoint> make_checkpoint(std::string_view architecture,
                                       const std::filesystem::path& folder,
                                       const MakeOptions& options, FileSystem& files = disk());

}  // namespace assay::engine
