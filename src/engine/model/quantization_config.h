// The description of a folder's quantised weights: `quantization_config` of its config.json.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/records/json.h"
#include "base/result.h"

namespace assay::engine {

enum class QuantizationMethod {
  kAwq,     // AutoAWQ's "gemm" layout
  kGptq,    // as AutoGPTQ and GPTQModel write it
  kPacked,  // compressed-tensors' "pack-quantized"
  kFp8,     // compressed-tensors' "float-quantized"
};

struct QuantizationConfig {
  QuantizationMethod method = QuantizationMethod::kAwq;
  int64_t group_size = -1;      // inputs that share a scale, a multiple of 32; -1: all of a row
  bool symmetric = false;       // no zeros of their own
  bool act_order = false;       // inputs may belong to groups in any order (g_idx)
  bool zeros_less_one = false;  // GPTQ's first version stores each zero less one
  bool one_scale = false;       // a whole weight shares one
  // Modules that weren't converted, as the file names them, or, with `kept_by_parts`, parts of
  // their names. A text that begins with "re:" is a pattern.
  std::vector<std::string> kept = {};
  bool kept_by_parts = false;
  bool head = false;  // lm_head is converted too, if `kept` doesn't name it
};

std::string_view method_name(QuantizationMethod method);  // "awq", "gptq", ...

// 4-bit integers of AWQ (gemm), GPTQ and compressed-tensors (pack-quantized: symmetric, or with
// zeros; groups or whole rows), and e4m3 of compressed-tensors (float-quantized: by channel or
// tensor, with activations that are left alone or quantised as they come). A member that isn't
// known or whose value isn't supported is bad_input: either could change what the weights are.
// `object` names it in errors.
Result<QuantizationConfig> parse_quantization_config(const Json& json, std::string_view object);

// kYes: a checkpoint of this config must have `module` as it was; kEither: it may.
enum class KeptModule { kNo, kYes, kEither };
KeptModule is_kept(const QuantizationConfig& config, std::string_view module);

}  // namespace assay::engine
