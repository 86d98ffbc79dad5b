// The reader of models in one GGUF file: Llama, Qwen2 and GPT-2 as llama.cpp's converter writes
// them.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

#include "base/result.h"
#include "engine/model/checkpoint.h"

namespace assay::engine {

// Maps the file. Its metadata become the config, so that what they ask for is checked as a
// config.json's is; a setting of the architecture that is not known here could change what is
// computed, and is bad_input. Tensors keep their formats, mixed as they may be: those of a norm or
// a bias must have elements. Rows of Llama's q and k lie in the file's order
// (CheckpointFiles::interleaved).
Result<CheckpointFiles> read_gguf_checkpoint(const std::filesystem::path& file);
// The same of bytes that must outlive the result; its files and maps are empty.
Result<CheckpointFiles> read_gguf_bytes(std::span<const std::byte> bytes, std::string_view object);

}  // namespace assay::engine
