// The named models that `assay model make` knows, with the dimensions of the real ones.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/records/json.h"
#include "base/result.h"
#include "engine/tensor.h"
#include "engine/tokenizer/make.h"

namespace assay::engine {

// One named model. The published ones (Qwen2.5, Llama) have the dimensions, rotary settings and
// tying of their Hugging Face configs. The gpt2-* ones have GPT-2's form with widths and depths
// chosen so that the parameters come near the name: 25m is 3 layers of 384 (25.0 M), 50m is 8 of
// 512 (51.5 M), 100m is 9 of 768 (103.2 M; GPT-2 small itself has 12). The tiny-* ones are for
// tests: a few 100 kB, every feature of the family in use, dimensions that don't coincide.
struct NamedArchitecture {
  std::string name;            // "llama3.2-1b"
  DType dtype = DType::kBF16;  // as published
  TokenizerStyle tokenizer = TokenizerStyle::kGpt2;
  Json config;  // config.json without torch_dtype and token ids
};

// The names, smallest family first; the error for an unknown one lists them.
std::vector<std::string> architecture_names();

// An unknown name is an error that lists the known ones and points at the nearest.
Result<NamedArchitecture> find_architecture(std::string_view name);

// The config.json of a checkpoint of this architecture at this type.
Json make_config_json(const NamedArchitecture& architecture, DType dtype);
// The generation_config.json beside it.
Json make_generation_config_json(const NamedArchitecture& architecture);

}  // namespace assay::engine
