// Checkpoints with quantised weights, put together value by value as the documents of their layouts
// say, for tests.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "base/files/files.h"
#include "base/random.h"
#include "base/records/json.h"
#include "engine/model/checkpoint.h"
#include "engine/model/convert.h"
#include "engine/model/safetensors.h"

namespace assay::engine {

struct TinyLayout {
  QuantizationMethod method = QuantizationMethod::kAwq;
  int64_t group = 128;  // -1: a row
  bool act_order = false;
  bool zeros = false;           // pack-quantized with zeros of its own
  bool second_version = false;  // of GPTQ
  bool one_scale = false;       // of fp8
  DType dtype = DType::kF16;    // of scales and of what isn't quantised
};

inline std::string name_of(const TinyLayout& layout) {
  return fmt::format("{}-g{}{}{}{}{}-{}", method_name(layout.method), layout.group,
                     layout.act_order ? "-order" : "", layout.zeros ? "-zeros" : "",
                     layout.second_version ? "-v2" : "", layout.one_scale ? "-one" : "",
                     dtype_name(layout.dtype));
}

// Each method with the settings that change what is stored.
inline std::vector<TinyLayout> tiny_layouts() {
  using enum QuantizationMethod;
  std::vector<TinyLayout> layouts;
  for (const int64_t group : {32, 64, 128, -1}) layouts.push_back({.method = kAwq, .group = group});
  for (const int64_t group : {32, 128, -1}) {
    layouts.push_back({.method = kGptq, .group = group});
    layouts.push_back({.method = kPacked, .group = group, .dtype = DType::kBF16});
  }
  layouts.push_back({.method = kGptq, .group = 64, .act_order = true});
  layouts.push_back({.method = kGptq, .group = 32, .act_order = true, .second_version = true});
  layouts.push_back({.method = kPacked, .group = 128, .zeros = true, .dtype = DType::kBF16});
  layouts.push_back({.method = kPacked, .group = 64, .act_order = true, .dtype = DType::kF16});
  for (const bool one : {false, true}) {
    layouts.push_back(
        {.method = kFp8, .group = -1, .one_scale = one, .dtype = one ? DType::kF32 : DType::kBF16});
  }
  return layouts;
}

// A Llama whose products are quantised, but for the head; removed at the end.
class TinyQuantized {
 public:
  struct Tensor {
    std::string dtype;
    std::vector<int64_t> dims;
    std::string bytes;
  };

  explicit TinyQuantized(const TinyLayout& layout)
      : layout_(layout),
        folder_(std::filesystem::path(::testing::TempDir()) /
                fmt::format("assay-quantized-{}-{}", name_of(layout), getpid())) {
    std::filesystem::create_directories(folder_);
    config = Json::parse(R"({"model_type": "llama", "vocab_size": 41, "hidden_size": 256,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "intermediate_size": 384, "max_position_embeddings": 48, "rms_norm_eps": 1e-6,
        "hidden_act": "silu", "rope_theta": 10000.0, "tie_word_embeddings": false})");
    config["torch_dtype"] = layout.dtype == DType::kF32   ? "float32"
                            : layout.dtype == DType::kF16 ? "float16"
                                                          : "bfloat16";
    config["quantization_config"] = quantization();
    const auto parsed = parse_model_config(config, "tiny");
    EXPECT_TRUE(parsed) << parsed.error().message;
    if (parsed) make(*parsed);
    write();
  }
  ~TinyQuantized() { std::filesystem::remove_all(folder_); }

  const std::filesystem::path& folder() const { return folder_; }

  // Changed members stand in the files once they are written again.
  void write() const {
    std::vector<SafetensorsEntry> entries;
    std::string data;
    for (const auto& [name, tensor] : tensors) {
      entries.push_back({name, tensor.dtype, tensor.dims, 0, 0});
      data += tensor.bytes;
    }
    EXPECT_TRUE(write_file(folder_ / "config.json", to_json_text(config)));
    EXPECT_TRUE(write_file(folder_ / "model.safetensors", make_safetensors_header(entries) + data));
  }

  Json config;
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::vector<float>> values;  // of the weights, [out, in]

 private:
  Json quantization() const {
    const int64_t group = layout_.group;
    switch (layout_.method) {
      case QuantizationMethod::kAwq:
        return {{"quant_method", "awq"}, {"bits", 4},         {"group_size", group},
                {"zero_point", true},    {"version", "gemm"}, {"modules_to_not_convert", nullptr}};
      case QuantizationMethod::kGptq:
        return {{"quant_method", "gptq"},
                {"bits", 4},
                {"group_size", group},
                {"desc_act", layout_.act_order},
                {"sym", true},
                {"damp_percent", 0.01},
                {"checkpoint_format", layout_.second_version ? "gptq_v2" : "gptq"}};
      case QuantizationMethod::kPacked:
      case QuantizationMethod::kFp8:
        break;
    }
    const bool fp8 = layout_.method == QuantizationMethod::kFp8;
    Json weights = {{"num_bits", fp8 ? 8 : 4},
                    {"type", fp8 ? "float" : "int"},
                    {"symmetric", !layout_.zeros},
                    {"strategy", layout_.one_scale ? "tensor"
                                 : group < 0       ? "channel"
                                                   : "group"},
                    {"group_size", group < 0 ? Json() : Json(group)},
                    {"dynamic", false},
                    {"actorder", layout_.act_order ? Json("group") : Json()},
                    {"observer", "minmax"}};
    Json activations;
    if (fp8) {
      activations = {{"num_bits", 8},
                     {"type", "float"},
                     {"strategy", "token"},
                     {"dynamic", true},
                     {"symmetric", true}};
    }
    const Json one = {{"targets", {"Linear"}},
                      {"weights", weights},
                      {"input_activations", activations},
                      {"output_activations", nullptr}};
    return {{"quant_method", "compressed-tensors"},
            {"format", fp8 ? "float-quantized" : "pack-quantized"},
            {"quantization_status", "compressed"},
            {"ignore", {"lm_head"}},
            {"kv_cache_scheme", nullptr},
            {"config_groups", {{"group_0", one}}}};
  }

  void make(const ModelConfig& parsed) {
    for (const TensorSpec& spec : tensor_specs(parsed)) {
      const bool plain = spec.shape.rank() == 1 || spec.name.find(".layers.") == std::string::npos;
      if (plain) {
        const bool norm = spec.name.find("norm") != std::string::npos;
        std::vector<float> numbers(static_cast<size_t>(spec.shape.elements()));
        for (float& number : numbers) number = static_cast<float>(random_.uniform() - 0.5) + norm;
        std::vector<int64_t> dims;
        for (size_t i = 0; i < spec.shape.rank(); ++i) dims.push_back(spec.shape[i]);
        tensors[spec.name] = floats(numbers, dims);
        continue;
      }
      module_ = spec.name.substr(0, spec.name.rfind('.') + 1);
      outputs_ = spec.shape[0];
      inputs_ = spec.shape[1];
      layout_.method == QuantizationMethod::kFp8 ? make_fp8(spec.name) : make_int4(spec.name);
    }
  }

  // Rounds the numbers, as the tensor has them.
  Tensor floats(std::vector<float>& numbers, const std::vector<int64_t>& dims) const {
    const auto count = static_cast<int64_t>(numbers.size());
    std::string bytes(numbers.size() * dtype_size_bytes(layout_.dtype), '\0');
    const TensorView view(reinterpret_cast<const std::byte*>(numbers.data()), DType::kF32,
                          Shape{count});
    convert(view, layout_.dtype, reinterpret_cast<std::byte*>(bytes.data()));
    const TensorView back(reinterpret_cast<const std::byte*>(bytes.data()), layout_.dtype,
                          Shape{count});
    std::vector<float> rounded(numbers.size());
    convert(back, DType::kF32, reinterpret_cast<std::byte*>(rounded.data()));
    numbers = rounded;
    return {std::string(safetensors_dtype_name(layout_.dtype)), dims, bytes};
  }

  static Tensor words(std::vector<int64_t> dims) {
    const int64_t count =
        std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
    return {"I32", std::move(dims), std::string(static_cast<size_t>(count) * 4, '\0')};
  }
  static void put(Tensor& tensor, int64_t row, int64_t column, int64_t place, uint32_t code) {
    const auto at = static_cast<size_t>(row * tensor.dims[1] + column) * 4;
    uint32_t word;
    std::memcpy(&word, tensor.bytes.data() + at, 4);
    word |= code << 4 * place;
    std::memcpy(tensor.bytes.data() + at, &word, 4);
  }

  void make_int4(const std::string& name) {
    const bool awq = layout_.method == QuantizationMethod::kAwq;
    const bool packed = layout_.method == QuantizationMethod::kPacked;
    const int64_t group = layout_.group < 0 ? inputs_ : layout_.group, groups = inputs_ / group;
    // The column whose code AWQ has at each place of a word of eight.
    constexpr std::array<int64_t, 8> kAwqOrder = {0, 2, 4, 6, 1, 3, 5, 7};
    const auto awq_place = [&](int64_t column) {
      return std::ranges::find(kAwqOrder, column % 8) - kAwqOrder.begin();
    };
    std::vector<int64_t> group_of(static_cast<size_t>(inputs_));
    for (int64_t i = 0; i < inputs_; ++i) group_of[static_cast<size_t>(i)] = i / group;
    if (layout_.act_order) {
      const uint64_t seed =
          name.find("_proj") != std::string::npos && name.find("self_attn.o") == std::string::npos
              ? 1
              : 2;
      Random shuffled(seed + static_cast<uint64_t>(inputs_));
      for (size_t i = group_of.size(); i > 1; --i) {
        std::swap(group_of[i - 1], group_of[static_cast<size_t>(shuffled.below(i))]);
      }
    }
    const double spread = 1.5 / std::sqrt(static_cast<double>(inputs_)) / 8;
    std::vector<float> scales(static_cast<size_t>(outputs_ * groups));
    for (float& scale : scales) scale = static_cast<float>(spread * (0.5 + random_.uniform()));
    // The place of an output's scale of a group.
    const auto scale_at = [&](int64_t o, int64_t g) {
      return static_cast<size_t>(packed ? o * groups + g : g * outputs_ + o);
    };
    const Tensor stored =
        floats(scales, packed ? std::vector{outputs_, groups} : std::vector{groups, outputs_});
    tensors[module_ + (packed ? "weight_scale" : "scales")] = stored;
    const bool own_zeros = awq || layout_.zeros;
    std::vector<uint32_t> zeros(static_cast<size_t>(outputs_ * groups), 8);
    if (own_zeros) {
      for (uint32_t& zero : zeros) zero = static_cast<uint32_t>(random_.below(16));
    }
    Tensor codes = packed ? words({outputs_, inputs_ / 8})
                   : awq  ? words({inputs_, outputs_ / 8})
                          : words({inputs_ / 8, outputs_});
    Tensor zero_words = packed ? words({outputs_ / 8, groups}) : words({groups, outputs_ / 8});
    std::vector<float>& weight = values[name];
    for (int64_t o = 0; o < outputs_; ++o) {
      for (int64_t g = 0; g < groups; ++g) {
        const uint32_t zero = zeros[scale_at(o, g)];
        const uint32_t less =
            layout_.method == QuantizationMethod::kGptq && !layout_.second_version ? 1 : 0;
        packed ? put(zero_words, o / 8, g, o % 8, zero)
               : put(zero_words, g, o / 8, awq ? awq_place(o) : o % 8, zero - less);
      }
      for (int64_t i = 0; i < inputs_; ++i) {
        const auto code = static_cast<uint32_t>(random_.below(16));
        packed ? put(codes, o, i / 8, i % 8, code)
        : awq  ? put(codes, i, o / 8, awq_place(o), code)
               : put(codes, i / 8, o, i % 8, code);
        const size_t at = scale_at(o, group_of[static_cast<size_t>(i)]);
        weight.push_back((static_cast<float>(code) - static_cast<float>(zeros[at])) * scales[at]);
      }
    }
    tensors[module_ + (packed ? "weight_packed" : "qweight")] = codes;
    if (!packed) tensors[module_ + "qzeros"] = zero_words;
    if (packed && layout_.zeros) tensors[module_ + "weight_zero_point"] = zero_words;
    if (packed) {
      const std::array<int64_t, 2> shape = {outputs_, inputs_};
      tensors[module_ + "weight_shape"] = {
          "I64", {2}, std::string(reinterpret_cast<const char*>(shape.data()), sizeof shape)};
    }
    if (layout_.method == QuantizationMethod::kGptq || layout_.act_order) {
      Tensor indices = words({inputs_});
      for (size_t i = 0; i < group_of.size(); ++i) {
        const auto g = static_cast<int32_t>(group_of[i]);
        std::memcpy(indices.bytes.data() + 4 * i, &g, 4);
      }
      tensors[module_ + (packed ? "weight_g_idx" : "g_idx")] = indices;
    }
  }

  void make_fp8(const std::string& name) {
    std::vector<float> scales(static_cast<size_t>(layout_.one_scale ? 1 : outputs_));
    const double spread = 1.5 / std::sqrt(static_cast<double>(inputs_)) / 448;
    for (float& scale : scales) scale = static_cast<float>(spread * (1 + random_.uniform()));
    tensors[module_ + "weight_scale"] =
        layout_.one_scale ? floats(scales, {1}) : floats(scales, {outputs_, 1});
    Tensor stored{"F8_E4M3", {outputs_, inputs_}, {}};
    std::vector<float>& weight = values[name];
    for (int64_t o = 0; o < outputs_; ++o) {
      for (int64_t i = 0; i < inputs_; ++i) {
        auto bits = static_cast<uint8_t>(random_.below(256));
        if ((bits & 0x7f) == 0x7f) bits ^= 1;
        stored.bytes += static_cast<char>(bits);
        weight.push_back(e4m3_to_f32(bits) *
                         scales[static_cast<size_t>(layout_.one_scale ? 0 : o)]);
      }
    }
    tensors[name] = stored;
  }

  TinyLayout layout_;
  std::filesystem::path folder_;
  Random random_{5};
  std::string module_;
  int64_t inputs_ = 0, outputs_ = 0;
};

}  // namespace assay::engine
