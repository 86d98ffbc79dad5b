// Writes a checkpoint folder with weights in e4m3.
#pragma once

#include <filesystem>

#include "base/result.h"
#include "engine/model/quantize.h"

namespace assay::engine {

// As compressed-tensors' FP8_DYNAMIC has it ("float-quantized"): the layers' products in e4m3 with
// an fp32 scale an output, whose largest weight is 448; embeddings, norms, biases and the head as
// they are. `from`: a folder of Llama or Qwen2, whose other files of text are copied; `to`: a new
// or empty folder, which has no config.json until all of it is there. The same model gives the same
// bytes; memory doesn't grow with it. bad_input: a weight that isn't finite, or another model.
Result<QuantizedModel> quantize_to_fp8(const std::filesystem::path& from,
                                       const std::filesystem::path& to);

// To the nearest, ties to even; larger magnitudes than 448 to 448. NaN stays one.
uint8_t f32_to_e4m3(float value);

}  // namespace assay::engine
