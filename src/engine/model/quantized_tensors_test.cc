// Quantised safetensors against the values that the test packed, and what is wrong with them in one
// line.
#include "engine/model/quantized_tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/memory/buffer_pool.h"
#include "engine/model/safetensors_checkpoint.h"
#include "engine/model/tiny_quantized.h"
#include "engine/model/weights.h"

namespace assay::engine {
namespace {

using testing::HasSubstr;

class QuantizedLayouts : public testing::TestWithParam<TinyLayout> {};

TEST_P(QuantizedLayouts, AreWhatTheirLayoutSays) {
  const TinyQuantized made(GetParam());
  auto checkpoint = Checkpoint::open(made.folder());
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  EXPECT_EQ(checkpoint->config().dtype, GetParam().dtype);
  BufferPool memory;
  for (const std::optional<DType> dtype : {std::optional<DType>(), std::optional(DType::kF32)}) {
    auto opened = Checkpoint::open(made.folder());
    auto weights = Weights::load(std::move(*opened), dtype, memory);
    ASSERT_TRUE(weights) << weights.error().message;
    for (const auto& [name, expected] : made.values) {
      EXPECT_EQ(weights->rows(name) != nullptr, !dtype) << "blocks are made when they are wanted";
      EXPECT_EQ(weights->view(name).data == nullptr, !dtype);
      const TensorView& view = weights->tensor(name);
      EXPECT_EQ(weights->rows(name), nullptr);
      EXPECT_EQ(view.in_blocks(), !dtype) << name;
      const int64_t width = view.row_values();
      std::vector<float> found(static_cast<size_t>(width)), from_file(found.size());
      for (int64_t o = 0; o < view.shape[0]; ++o) {
        decode_row(view, o, found.data());
        checkpoint->decode_row(name, o, from_file.data());
        for (int64_t i = 0; i < width; ++i) {
          const auto at = static_cast<size_t>(i);
          ASSERT_EQ(found[at], expected[static_cast<size_t>(o * width + i)])
              << name << " [" << o << ", " << i << "]";
          ASSERT_EQ(from_file[at], found[at]);
        }
      }
    }
    EXPECT_EQ(weights->tensor("lm_head.weight").format,
              weight_format(dtype.value_or(GetParam().dtype)));
  }
}

INSTANTIATE_TEST_SUITE_P(All, QuantizedLayouts, testing::ValuesIn(tiny_layouts()),
                         [](const auto& layout) {
                           std::string name = name_of(layout.param);
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

std::string error_of(const TinyQuantized& made) {
  made.write();
  const auto opened = Checkpoint::open(made.folder());
  if (opened) return "no error";
  EXPECT_EQ(opened.error().kind, ErrorKind::kBadInput);
  EXPECT_EQ(opened.error().message.find('\n'), std::string::npos);
  return opened.error().message;
}

const std::string kModule = "model.layers.1.self_attn.q_proj";

// Every part by itself: gone, of another type, of another shape.
TEST_P(QuantizedLayouts, NeedEachPartAsItsConfigSays) {
  const TinyQuantized whole(GetParam());
  for (const auto& [name, tensor] : whole.tensors) {
    if (name.find(kModule) == std::string::npos) continue;
    SCOPED_TRACE(name);
    TinyQuantized made(GetParam());
    made.tensors.erase(name);
    const bool optional = name.ends_with("g_idx") && !GetParam().act_order;
    EXPECT_THAT(error_of(made), HasSubstr(optional ? "no error" : "\"" + name + "\""));
    made.tensors[name] = tensor;
    made.tensors[name].dtype = "I16";
    made.tensors[name].bytes.resize(tensor.bytes.size() / (tensor.dtype == "I32"   ? 2
                                                           : tensor.dtype == "I64" ? 4
                                                           : tensor.dtype == "F32" ? 2
                                                                                   : 1));
    if (tensor.dtype == "F8_E4M3") made.tensors[name].bytes.resize(2 * tensor.bytes.size());
    EXPECT_THAT(error_of(made), HasSubstr("\"" + name + "\""));
    made.tensors[name] = tensor;
    made.tensors[name].dims.push_back(1);
    EXPECT_THAT(error_of(made), HasSubstr("expected shape"));
    made.tensors[name] = tensor;
    made.tensors[name].dims.front() *= 2;
    made.tensors[name].bytes += tensor.bytes;
    EXPECT_THAT(error_of(made), HasSubstr("expected shape"));
  }
}

// Bytes of the header, of the parts that are read at once, and lengths: an error in one line, or
// weights that can be decoded.
TEST_P(QuantizedLayouts, MutatedFilesEndInOneLine) {
  const TinyQuantized made(GetParam());
  const auto config = parse_model_config(made.config, "mutated");
  const std::string whole = *read_file(made.folder() / "model.safetensors");
  uint64_t header;
  std::memcpy(&header, whole.data(), sizeof header);
  Random random(8);
  int accepted = 0;
  constexpr int kFiles = 400;
  for (int i = 0; i < kFiles; ++i) {
    std::string text = whole;
    for (uint64_t change = 0; change <= random.below(3); ++change) {
      const uint64_t most = random.below(3) == 0 ? text.size() : header + 8;
      const auto at = static_cast<size_t>(random.below(most));
      // A digit stays one as a rule: JSON that isn't is refused at once.
      const bool digit = text[at] >= '0' && text[at] <= '9' && random.below(4) != 0;
      text[at] = static_cast<char>(digit ? '0' + random.below(10) : random.below(256));
    }
    if (random.below(10) == 0) text.resize(static_cast<size_t>(random.below(text.size())));
    // Its own memory, so that an over-read shows.
    const std::vector<std::byte> bytes(
        reinterpret_cast<const std::byte*>(text.data()),
        reinterpret_cast<const std::byte*>(text.data()) + text.size());
    auto files = read_safetensors_bytes(*config, bytes, "mutated");
    const auto checkpoint = files ? Checkpoint::of("mutated", std::move(*files))
                                  : Result<Checkpoint>(std::unexpected(files.error()));
    if (!checkpoint) {
      ASSERT_EQ(checkpoint.error().message.find('\n'), std::string::npos);
      ASSERT_EQ(checkpoint.error().kind, ErrorKind::kBadInput);
      continue;
    }
    ++accepted;
    for (const TensorSpec& spec : checkpoint->tensors()) {
      std::vector<float> row(static_cast<size_t>(spec.shape[spec.shape.rank() - 1]));
      checkpoint->decode_row(spec.name, 0, row.data());
      checkpoint->decode_row(spec.name, spec.shape.rank() == 2 ? spec.shape[0] - 1 : 0, row.data());
    }
  }
  EXPECT_GT(accepted, kFiles / 20);
  EXPECT_LT(accepted, kFiles / 2);
}

TEST(QuantizedTensors, ThatAreLeftOverOrTwiceThereAreErrors) {
  TinyQuantized made({.method = QuantizationMethod::kAwq});
  const auto part = made.tensors[kModule + ".scales"];
  made.tensors["model.layers.2.self_attn.q_proj.scales"] = part;
  EXPECT_THAT(error_of(made), HasSubstr("found \"model.layers.2.self_attn.q_proj.scales\""));
  made.tensors.erase("model.layers.2.self_attn.q_proj.scales");
  made.tensors[kModule + ".weight"] = {"F16", {256, 256}, std::string(256 * 256 * 2, '\0')};
  EXPECT_THAT(error_of(made), HasSubstr("found it quantised and not"));
}

TEST(QuantizedTensors, AreThoseThatTheConfigSays) {
  TinyQuantized made({.method = QuantizationMethod::kAwq});
  Json& config = made.config["quantization_config"];
  config["modules_to_not_convert"] = {"layers.1.self_attn.q_proj"};
  EXPECT_THAT(error_of(made), HasSubstr("as it was, by its quantization_config"));
  for (const char* suffix : {".qweight", ".qzeros", ".scales"})
    made.tensors.erase(kModule + suffix);
  made.tensors[kModule + ".weight"] = {"F16", {256, 256}, std::string(256 * 256 * 2, '\0')};
  EXPECT_EQ(error_of(made), "no error");
  config.erase("modules_to_not_convert");
  EXPECT_THAT(error_of(made), HasSubstr("expected tensor \"" + kModule + ".qweight\" of awq"));
}

TEST(QuantizedTensors, ABiasThatTheModelLacksMustBeZeros) {
  TinyQuantized made({.method = QuantizationMethod::kGptq});
  made.tensors[kModule + ".bias"] = {"F16", {256}, std::string(512, '\0')};
  EXPECT_EQ(error_of(made), "no error");
  made.tensors[kModule + ".bias"].bytes.back() = 1;
  EXPECT_THAT(error_of(made), HasSubstr("found others"));
}

void put_word(TinyQuantized::Tensor& tensor, size_t at, uint32_t word) {
  std::memcpy(tensor.bytes.data() + 4 * at, &word, 4);
}

TEST(QuantizedTensors, GroupsOfInputsAreChecked) {
  TinyQuantized made({.method = QuantizationMethod::kGptq, .group = 64, .act_order = true});
  auto& indices = made.tensors[kModule + ".g_idx"];
  const auto whole = indices;
  for (const uint32_t group : {4u, 0x80000000u, 0xffffffffu, 1000000u}) {
    put_word(indices, 7, group);
    EXPECT_THAT(error_of(made), HasSubstr("expected groups from 0 to 3"));
  }
  for (size_t i = 0; i < 65; ++i) put_word(indices, i, 2);
  EXPECT_THAT(error_of(made), HasSubstr("expected 64 inputs for each group"));
  indices = whole;
  made.config["quantization_config"]["desc_act"] = false;
  EXPECT_THAT(error_of(made), HasSubstr("expected groups in order"));
}

TEST(QuantizedTensors, ContentsThatHaveTwoMeaningsAreRefused) {
  TinyQuantized gptq({.method = QuantizationMethod::kGptq, .group = 32});
  put_word(gptq.tensors[kModule + ".qzeros"], 3, 0x777f7777);
  EXPECT_THAT(error_of(gptq), HasSubstr("found one stored as 15"));
  TinyQuantized packed({.method = QuantizationMethod::kPacked});
  packed.tensors[kModule + ".weight_shape"].bytes[0] = 7;
  EXPECT_THAT(error_of(packed), HasSubstr("expected [256, 256] in tensor"));
}

TEST(QuantizedTensors, SizesMustBeWholeGroups) {
  TinyQuantized made({.method = QuantizationMethod::kAwq, .group = 128});
  made.config["quantization_config"]["group_size"] = 96;
  EXPECT_THAT(error_of(made), HasSubstr("inputs in whole groups of 96"));
}

// Products of the same inputs share an order, and so can be merged.
TEST(QuantizedTensors, EqualOrdersAreOne) {
  const TinyQuantized made({.method = QuantizationMethod::kGptq, .group = 64, .act_order = true});
  const auto opened = Checkpoint::open(made.folder());
  ASSERT_TRUE(opened) << opened.error().message;
  const auto order = [&](const std::string& name) {
    return opened->tensor("model.layers.0." + name + ".weight").input_order;
  };
  ASSERT_NE(order("self_attn.q_proj"), nullptr);
  EXPECT_EQ(order("self_attn.q_proj"), order("self_attn.k_proj"));
  EXPECT_NE(order("self_attn.q_proj"), order("self_attn.o_proj"));
  EXPECT_NE(order("self_attn.q_proj"), order("mlp.down_proj"));
}

}  // namespace
}  // namespace assay::engine
