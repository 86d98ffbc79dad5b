// Names of tensors in GGUF files and in the engine, and of mixes of formats.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/model/config.h"

namespace assay::engine {

// The engine's name of a file's tensor: "model.layers.3.self_attn.q_proj.weight" for
// "blk.3.attn_q.weight". Empty: it has none.
std::string engine_name(std::string_view name, Architecture architecture);
// The other way, for the name of a tensor of this architecture.
std::string gguf_name(std::string_view name, Architecture architecture);

// llama.cpp's name of a mix of blocks by its "general.file_type", which its server and llama-bench
// show: "Q4_K - Medium". Empty: no mix of formats that are read here.
std::string_view mix_name(int64_t file_type);

}  // namespace assay::engine
