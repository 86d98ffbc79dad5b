// config.json of a Hugging Face checkpoint, read into the one description that every builder uses.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/records/json.h"
#include "base/result.h"
#include "engine/model/quantization_config.h"
#include "engine/tensor.h"
#include "engine/weight_layout.h"

namespace assay::engine {

enum class Architecture { kGpt2, kLlama, kQwen2 };
enum class NormKind { kLayerNorm, kRmsNorm };
enum class Activation { kGeluTanh, kGeluErf, kRelu, kSilu };

enum class RopeScalingKind {
  kNone,
  kLinear,
  kLlama3,
  kFactors,  // as GGUF has it: a divisor for each frequency
};

// `rope_scaling` / `rope_parameters` as transformers has them.
struct RopeScaling {
  RopeScalingKind kind = RopeScalingKind::kNone;
  double factor = 1;
  double low_freq_factor = 1;  // llama3 only, as are the next two
  double high_freq_factor = 4;
  int64_t original_max_positions = 0;
  std::vector<double> factors = {};  // kFactors alone: head_dim / 2 of them
};

struct ModelConfig {
  Architecture architecture = Architecture::kGpt2;
  int64_t vocab_size = 0;
  int64_t hidden_size = 0;
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;  // divides heads; equal to it: multi-head attention
  int64_t head_dim = 0;  // given, or hidden_size / heads
  int64_t intermediate_size = 0;
  int64_t max_positions = 0;
  NormKind norm = NormKind::kRmsNorm;
  double norm_eps = 1e-5;
  Activation activation = Activation::kSilu;
  bool gated_mlp = true;  // gate and up products; false: GPT-2's fc and proj
  bool tied_embeddings = false;
  bool qkv_bias = false;
  bool attention_out_bias = false;
  bool mlp_bias = false;
  bool learned_positions = false;  // GPT-2's wpe; false: RoPE
  double rope_theta = 10000;
  RopeScaling rope_scaling;
  DType dtype = DType::kF32;  // of the stored weights; of mixed ones, of most that are in no blocks
  std::optional<QuantizationConfig> quantization = {};
  WeightLayout linear_layout = WeightLayout::kOutIn;  // of a layer's products
  std::optional<int64_t> bos_token_id;
  std::vector<int64_t> eos_token_ids;
};

// Reads the fields that transformers would read. A field that changes the computation and isn't
// supported
// (another architecture or activation, sliding windows in use, partial rotary, scaled attention
// options, ...) is an error that names it; so is a size that is missing, not positive, or doesn't
// divide. `object` names the file in errors.
Result<ModelConfig> parse_model_config(const Json& json, std::string_view object);
Result<ModelConfig> read_model_config(const std::filesystem::path& folder);  // folder/config.json

// Multiplications and additions that a prompt needs, of `batch` rows of so many positions: those of
// the weights for each position, the head's for the last `logits_of` of them, and attention's two
// products with each position up to its own. Embeddings, norms and activations aren't counted.
uint64_t prompt_operations(const ModelConfig& config, int64_t batch, int64_t positions,
                           int64_t logits_of = 1);

std::string_view architecture_name(Architecture architecture);  // "gpt2", "llama", "qwen2"

// RoPE's inverse frequencies, head_dim / 2 of them, with scaling applied (transformers'
// modeling_rope_utils: default, linear, llama3; or divided by the factors).
std::vector<double> rope_inverse_frequencies(const ModelConfig& config);

}  // namespace assay::engine
