// The products of the models that assay is measured on, as the engine calls them.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/ops/ops.h"

namespace assay::bench {

struct ProductShape {
  const char* model;
  const char* name;
  int64_t inputs;
  int64_t outputs;
  engine::WeightLayout layout;
};

inline std::vector<ProductShape> model_shapes() {
  constexpr auto kInOut = engine::WeightLayout::kInOut;
  constexpr auto kOutIn = engine::WeightLayout::kOutIn;
  return {
      {"gpt2-100m", "c_attn", 768, 2304, kInOut},
      {"gpt2-100m", "attn.c_proj", 768, 768, kInOut},
      {"gpt2-100m", "c_fc", 768, 3072, kInOut},
      {"gpt2-100m", "mlp.c_proj", 3072, 768, kInOut},
      {"gpt2-100m", "lm_head", 768, 50257, kOutIn},
      {"qwen2.5-0.5b", "q_proj, o_proj", 896, 896, kOutIn},
      {"qwen2.5-0.5b", "k_proj, v_proj", 896, 128, kOutIn},
      {"qwen2.5-0.5b", "gate_proj, up_proj", 896, 4864, kOutIn},
      {"qwen2.5-0.5b", "down_proj", 4864, 896, kOutIn},
      {"qwen2.5-0.5b", "lm_head", 896, 151936, kOutIn},
      {"llama3.2-1b", "q_proj, o_proj", 2048, 2048, kOutIn},
      {"llama3.2-1b", "k_proj, v_proj", 2048, 512, kOutIn},
      {"llama3.2-1b", "gate_proj, up_proj", 2048, 8192, kOutIn},
      {"llama3.2-1b", "down_proj", 8192, 2048, kOutIn},
      {"llama3.2-1b", "lm_head", 2048, 128256, kOutIn},
  };
}

}  // namespace assay::bench
