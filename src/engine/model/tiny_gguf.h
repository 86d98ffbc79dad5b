// GGUF files of a checkpoint's weights, put together as llama.cpp's converter does, for tests.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/random.h"
#include "engine/model/checkpoint.h"
#include "engine/model/convert.h"
#include "engine/model/gguf_writer.h"
#include "engine/random_blocks.h"
#include "engine/session/tiny_checkpoint.h"

namespace assay::engine {

// Families whose rows are whole blocks of every format.
inline const std::vector<Family>& wide_families() {
  static const std::vector<Family> kFamilies = {
      {"gpt2-wide",
       R"("model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 37,
          "n_embd": 256, "n_layer": 2, "n_head": 4, "n_positions": 48, "n_inner": 512,
          "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5,
          "tie_word_embeddings": true)",
       DType::kF32},
      {"llama-wide",
       R"("model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 41,
          "hidden_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4,
          "num_key_value_heads": 2, "intermediate_size": 512,
          "max_position_embeddings": 48, "rms_norm_eps": 1e-6, "hidden_act": "silu",
          "rope_theta": 10000.0, "attention_bias": false, "mlp_bias": false,
          "tie_word_embeddings": false)",
       DType::kF32},
      {"qwen2-wide",
       R"("model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "vocab_size": 43,
          "hidden_size": 256, "num_hidden_layers": 2, "num_attention_heads": 8,
          "num_key_value_heads": 2, "intermediate_size": 256, "max_position_embeddings": 48,
          "rms_norm_eps": 1e-6, "hidden_act": "silu", "rope_theta": 1000000.0,
          "tie_word_embeddings": true)",
       DType::kF32},
  };
  return kFamilies;
}

// llama.cpp's name of a tensor, by a table that is not the program's.
inline std::string llama_cpp_name(std::string name) {
  static const std::vector<std::pair<std::string, std::string>> kParts = {
      {"transformer.h.", "blk."},
      {"transformer.wte", "token_embd"},
      {"transformer.wpe", "position_embd"},
      {"transformer.ln_f", "output_norm"},
      {"model.layers.", "blk."},
      {"model.embed_tokens", "token_embd"},
      {"model.norm", "output_norm"},
      {"lm_head", "output"},
      {"input_layernorm", "attn_norm"},
      {"post_attention_layernorm", "ffn_norm"},
      {"self_attn.q_proj", "attn_q"},
      {"self_attn.k_proj", "attn_k"},
      {"self_attn.v_proj", "attn_v"},
      {"self_attn.o_proj", "attn_output"},
      {"mlp.gate_proj", "ffn_gate"},
      {"mlp.up_proj", "ffn_up"},
      {"mlp.down_proj", "ffn_down"},
      {"ln_1", "attn_norm"},
      {"ln_2", "ffn_norm"},
      {"attn.c_attn", "attn_qkv"},
      {"attn.c_proj", "attn_output"},
      {"mlp.c_fc", "ffn_up"},
      {"mlp.c_proj", "ffn_down"},
  };
  for (const auto& [from, to] : kParts) {
    const size_t at = name.find(from);
    if (at != std::string::npos) name.replace(at, from.size(), to);
  }
  return name;
}

// Values of a tensor in the order and the shape that the file has them in.
struct GgufValues {
  std::vector<float> values;
  std::vector<int64_t> dims;
};
inline GgufValues gguf_values(const Checkpoint& checkpoint, const TensorSpec& spec) {
  const ModelConfig& config = checkpoint.config();
  std::vector<float> from(static_cast<size_t>(spec.shape.elements()));
  convert(checkpoint.tensor(spec.name), DType::kF32, reinterpret_cast<std::byte*>(from.data()));
  GgufValues to{from, {}};
  for (size_t i = 0; i < spec.shape.rank(); ++i) to.dims.push_back(spec.shape[i]);
  const auto at = [](int64_t i) { return static_cast<size_t>(i); };
  if (spec.name.find(".c_") != std::string::npos && to.dims.size() == 2) {  // Conv1D
    const int64_t in = to.dims[0], out = to.dims[1];
    for (int64_t i = 0; i < in; ++i) {
      for (int64_t o = 0; o < out; ++o) to.values[at(o * in + i)] = from[at(i * out + o)];
    }
    to.dims = {out, in};
  }
  const bool q = spec.name.find("q_proj") != std::string::npos;
  const bool k = spec.name.find("k_proj") != std::string::npos;
  if (config.architecture == Architecture::kLlama && (q || k)) {
    // LlamaModel.permute: [heads, 2, half, ...] becomes [heads, half, 2, ...].
    const int64_t heads = q ? config.heads : config.kv_heads, half = config.head_dim / 2;
    const int64_t inner = to.dims.size() == 2 ? to.dims[1] : 1;
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t side = 0; side < 2; ++side) {
        for (int64_t d = 0; d < half; ++d) {
          for (int64_t i = 0; i < inner; ++i) {
            to.values[at(((h * half + d) * 2 + side) * inner + i)] =
                from[at(((h * 2 + side) * half + d) * inner + i)];
          }
        }
      }
    }
  }
  return to;
}

inline void add_gguf_config(const ModelConfig& config, GgufHeader& header) {
  const std::string name(architecture_name(config.architecture));
  const auto whole = [&](const char* key, int64_t value) {
    header.add(name + "." + key, static_cast<uint32_t>(value));
  };
  header.add("general.architecture", name);
  whole("context_length", config.max_positions);
  whole("embedding_length", config.hidden_size);
  whole("block_count", config.layers);
  whole("feed_forward_length", config.intermediate_size);
  whole("attention.head_count", config.heads);
  const bool gpt2 = config.architecture == Architecture::kGpt2;
  header.add(name + (gpt2 ? ".attention.layer_norm_epsilon" : ".attention.layer_norm_rms_epsilon"),
             static_cast<float>(config.norm_eps));
  if (!gpt2) {
    whole("attention.head_count_kv", config.kv_heads);
    whole("attention.key_length", config.head_dim);
    whole("attention.value_length", config.head_dim);
    whole("rope.dimension_count", config.head_dim);
    header.add(name + ".rope.freq_base", static_cast<float>(config.rope_theta));
  }
}

// The whole file. A matrix of the format that `format` says by its name: of elements with the
// checkpoint's values, of blocks with random ones.
inline std::string gguf_file(const Checkpoint& checkpoint,
                             const std::function<WeightFormat(const std::string&)>& format) {
  const ModelConfig& config = checkpoint.config();
  Random random(11);
  GgufHeader header;
  add_gguf_config(config, header);
  std::string data;
  const auto add = [&](const std::string& name, WeightFormat stored, std::vector<int64_t> dims,
                       std::span<const std::byte> bytes) {
    header.add_tensor(name, stored, dims);
    data.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    data.append(GgufHeader::padding(bytes.size()), '\0');
  };
  if (config.rope_scaling.kind == RopeScalingKind::kLlama3) {
    ModelConfig plain = config;
    plain.rope_scaling = {};
    const auto base = rope_inverse_frequencies(plain), scaled = rope_inverse_frequencies(config);
    std::vector<float> factors;
    for (size_t i = 0; i < base.size(); ++i) {
      factors.push_back(static_cast<float>(base[i] / scaled[i]));
    }
    add("rope_freqs.weight", WeightFormat::kF32, {static_cast<int64_t>(factors.size())},
        std::as_bytes(std::span(factors)));
  }
  for (const TensorSpec& spec : tensor_specs(config)) {
    const GgufValues made = gguf_values(checkpoint, spec);
    const WeightFormat stored = made.dims.size() == 1 ? WeightFormat::kF32 : format(spec.name);
    const Shape shape{std::span<const int64_t>(made.dims)};
    std::vector<std::byte> bytes;
    if (traits(stored).in_blocks()) {
      bytes = random_blocks(random, stored, shape, 0.15);
    } else {
      bytes.resize(made.values.size() * traits(stored).block_bytes);
      const TensorView view(reinterpret_cast<const std::byte*>(made.values.data()), DType::kF32,
                            shape);
      convert(view, traits(stored).element, bytes.data());
    }
    add(llama_cpp_name(spec.name), stored, made.dims, bytes);
  }
  return header.finish() + data;
}

}  // namespace assay::engine
