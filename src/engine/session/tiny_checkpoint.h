// Checkpoints of a few kilobytes, one of each family, and generations over them, for the session's
// tests.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "base/files/files.h"
#include "base/random.h"
#include "base/records/json.h"
#include "engine/model/checkpoint.h"
#include "engine/model/config.h"
#include "engine/model/convert.h"
#include "engine/session/session.h"

namespace assay::engine {

constexpr int64_t kTinyPositions = 48;
using Prompt = std::vector<int32_t>;

struct Family {
  std::string name;
  std::string config;  // config.json, its dtype apart
  DType dtype;
};

inline const std::vector<Family>& families() {
  static const std::vector<Family> kFamilies = {
      {"gpt2",
       R"("model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 37,
          "n_embd": 12, "n_layer": 2, "n_head": 3, "n_positions": 48, "n_inner": null,
          "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5,
          "tie_word_embeddings": true)",
       DType::kF32},
      {"llama",
       R"("model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 41,
          "hidden_size": 20, "num_hidden_layers": 2, "num_attention_heads": 4,
          "num_key_value_heads": 2, "head_dim": 6, "intermediate_size": 28,
          "max_position_embeddings": 48, "rms_norm_eps": 1e-6, "hidden_act": "silu",
          "rope_theta": 10000.0, "attention_bias": false, "mlp_bias": false,
          "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                           "high_freq_factor": 4.0, "original_max_position_embeddings": 16},
          "tie_word_embeddings": false)",
       DType::kF16},
      {"qwen2",
       R"("model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "vocab_size": 43,
          "hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 6,
          "num_key_value_heads": 2, "intermediate_size": 33, "max_position_embeddings": 48,
          "rms_norm_eps": 1e-6, "hidden_act": "silu", "rope_theta": 1000000.0,
          "tie_word_embeddings": true)",
       DType::kBF16},
  };
  return kFamilies;
}

// A checkpoint folder with random weights, removed at the end.
class TinyCheckpoint {
 public:
  explicit TinyCheckpoint(const Family& family, int64_t positions = kTinyPositions)
      : folder_(std::filesystem::path(::testing::TempDir()) /
                fmt::format("assay-session-{}-{}-{}", family.name, positions, getpid())) {
    std::filesystem::create_directories(folder_);
    const std::string torch_name = family.dtype == DType::kF32   ? "float32"
                                   : family.dtype == DType::kF16 ? "float16"
                                                                 : "bfloat16";
    const std::string config =
        fmt::format("{{{}, \"dtype\": \"{}\", \"torch_dtype\": \"{}\"}}",
                    with_positions(family.config, positions), torch_name, torch_name);
    EXPECT_TRUE(write_file(folder_ / "config.json", config));
    const auto parsed = read_model_config(folder_);
    EXPECT_TRUE(parsed) << parsed.error().message;
    if (parsed) write_weights(*parsed, family.dtype);
  }
  ~TinyCheckpoint() { std::filesystem::remove_all(folder_); }

  const std::filesystem::path& folder() const { return folder_; }

 private:
  static std::string with_positions(std::string config, int64_t positions) {
    const std::string written = fmt::format(": {},", kTinyPositions);
    const size_t at = config.find(written);
    return config.replace(at, written.size(), fmt::format(": {},", positions));
  }

  // Many inputs of variance one have products of variance one: where scores are some hundred,
  // attention chooses between positions, and a rounded score chooses otherwise.
  static double range_of(const TensorSpec& spec) {
    constexpr double kRange = 0.8, kMany = 64;
    const auto inputs = static_cast<double>(spec.shape[spec.shape.rank() - 1]);
    return inputs <= kMany ? kRange : std::sqrt(12 / inputs);
  }

  void write_weights(const ModelConfig& config, DType dtype) {
    static constexpr std::array<const char*, 3> kNames = {"F32", "F16", "BF16"};
    Random random(7);
    Json header;
    std::string data;
    for (const TensorSpec& spec : tensor_specs(config)) {
      const bool norm_weight =
          spec.name.find("ln_") != std::string::npos || spec.name.find("norm") != std::string::npos;
      std::vector<float> values(static_cast<size_t>(spec.shape.elements()));
      for (float& value : values) {
        value = static_cast<float>((norm_weight ? 1.0 : 0.0) +
                                   (random.uniform() - 0.5) * range_of(spec));
      }
      const size_t begin = data.size();
      const TensorView view{reinterpret_cast<const std::byte*>(values.data()), DType::kF32,
                            spec.shape};
      data.resize(begin + values.size() * dtype_size_bytes(dtype));
      convert(view, dtype, reinterpret_cast<std::byte*>(data.data() + begin));
      Json& entry = header[spec.name];
      entry["dtype"] = kNames[static_cast<size_t>(dtype)];
      entry["data_offsets"] = {begin, data.size()};
      for (size_t i = 0; i < spec.shape.rank(); ++i) entry["shape"].push_back(spec.shape[i]);
    }
    std::string text = header.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');
    const uint64_t length = text.size();
    std::string file(reinterpret_cast<const char*>(&length), sizeof length);
    EXPECT_TRUE(write_file(folder_ / "model.safetensors", file + text + data));
  }

  std::filesystem::path folder_;
};

inline Session open(const TinyCheckpoint& checkpoint, const SessionOptions& options) {
  auto session = Session::open(checkpoint.folder(), options);
  EXPECT_TRUE(session) << session.error().message;
  return std::move(session).value();
}

inline std::vector<float> copy(std::span<const float> values) {
  return {values.begin(), values.end()};
}

inline void expect_near(std::span<const float> found, std::span<const float> expected,
                        double tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  double largest = 0;
  for (const float value : expected) largest = std::max(largest, std::abs(double{value}));
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_NEAR(found[i], expected[i], tolerance * std::max(1.0, largest)) << "at " << i;
  }
}

// A greedy generation: the tokens of each row, and the logits after every step.
struct Generation {
  std::vector<Prompt> tokens;
  std::vector<std::vector<float>> logits;
};

inline Generation generate(Session& session, const PromptBatch& prompts, int64_t steps) {
  Generation result;
  result.tokens.resize(static_cast<size_t>(prompts.batch));
  EXPECT_TRUE(session.prepare(prompts.batch, prompts.padded_len + steps));
  const Status prefilled = session.prefill(prompts);
  EXPECT_TRUE(prefilled) << prefilled.error().message;
  for (int64_t step = 0; step <= steps; ++step) {
    result.logits.push_back(copy(session.logits()));
    for (size_t row = 0; row < result.tokens.size(); ++row) {
      result.tokens[row].push_back(session.next_tokens()[row]);
    }
    if (step == steps) break;
    EXPECT_TRUE(session.decode(session.next_tokens()));
  }
  return result;
}

}  // namespace assay::engine
