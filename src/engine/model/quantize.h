// Writes a model as a GGUF file with weights in blocks.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace assay::engine {

// "q8_0", "q4_0", "q4_k_m": mixes as llama.cpp's quantiser has them, and "fp32" for what a file's
// blocks stand for. The mix q4_0 keeps the head in q6_k, and q4_k_m has q6_k there and in some
// layers' value and down products, and q5_k in GPT-2's joint q, k and v. A matrix whose rows are no
// whole blocks takes the next smaller block instead.
std::vector<std::string> quantized_types();

struct QuantizedModel {
  uint64_t parameters = 0, weight_bytes = 0;
};

// Reads a checkpoint folder or a GGUF file tensor by tensor, a few rows at a time, on all
// processors, so that memory doesn't grow with it. `to` is replaced when the whole file is there.
// The same model gives the same bytes on every processor. bad_input: a weight that isn't finite or
// too large for fp16's range, or an unknown type.
Result<QuantizedModel> quantize_model(const std::filesystem::path& from, std::string_view type,
                                      const std::filesystem::path& to);

}  // namespace assay::engine
