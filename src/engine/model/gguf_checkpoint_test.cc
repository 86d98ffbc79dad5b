// Models in GGUF files: the same config and weights as the checkpoint that they were made of, and
// one clear line for a file that was changed.
#include "engine/model/gguf_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "engine/model/tiny_gguf.h"

namespace assay::engine {
namespace {

using testing::HasSubstr;

WeightFormat all_fp32(const std::string&) {
  return WeightFormat::kF32;
}

Checkpoint open_tiny(const TinyCheckpoint& folder) {
  auto checkpoint = Checkpoint::open(folder.folder());
  EXPECT_TRUE(checkpoint) << checkpoint.error().message;
  return std::move(checkpoint).value();
}

Result<Checkpoint> read(const std::string& bytes) {
  ASSAY_TRY(CheckpointFiles files, read_gguf_bytes(std::as_bytes(std::span(bytes)), "test.gguf"));
  return Checkpoint::of("test.gguf", std::move(files));
}

TEST(GgufCheckpoint, HasTheConfigOfWhatItWasMadeOf) {
  for (const Family& family : families()) {
    SCOPED_TRACE(family.name);
    const TinyCheckpoint folder(family);
    const Checkpoint from = open_tiny(folder);
    const std::string bytes = gguf_file(from, all_fp32);
    const auto made = read(bytes);
    ASSERT_TRUE(made) << made.error().message;
    const ModelConfig& a = from.config();
    const ModelConfig& b = made->config();
    EXPECT_EQ(b.architecture, a.architecture);
    EXPECT_EQ(b.vocab_size, a.vocab_size);
    EXPECT_EQ(b.hidden_size, a.hidden_size);
    EXPECT_EQ(b.layers, a.layers);
    EXPECT_EQ(b.heads, a.heads);
    EXPECT_EQ(b.kv_heads, a.kv_heads);
    EXPECT_EQ(b.head_dim, a.head_dim);
    EXPECT_EQ(b.intermediate_size, a.intermediate_size);
    EXPECT_EQ(b.max_positions, a.max_positions);
    EXPECT_EQ(b.norm, a.norm);
    EXPECT_EQ(b.norm_eps, a.norm_eps);
    EXPECT_EQ(b.activation, a.activation);
    EXPECT_EQ(b.gated_mlp, a.gated_mlp);
    EXPECT_EQ(b.tied_embeddings, a.tied_embeddings);
    EXPECT_EQ(b.qkv_bias, a.qkv_bias);
    EXPECT_EQ(b.learned_positions, a.learned_positions);
    EXPECT_EQ(b.rope_theta, a.rope_theta);
    EXPECT_EQ(b.dtype, DType::kF32);
    EXPECT_EQ(b.linear_layout, WeightLayout::kOutIn);
    const auto expected = rope_inverse_frequencies(a), found = rope_inverse_frequencies(b);
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_NEAR(found[i], expected[i], 1e-6 * expected[i]);
    }
    EXPECT_EQ(made->parameter_count(), from.parameter_count());
    EXPECT_EQ(made->tensors().size(), from.tensors().size());
  }
}

TEST(GgufCheckpoint, KeepsEachTensorsFormat) {
  const TinyCheckpoint folder(wide_families()[2]);
  const Checkpoint from = open_tiny(folder);
  const std::string bytes = gguf_file(from, [](const std::string& name) {
    return name.find("down_proj") != std::string::npos ? WeightFormat::kQ6_K
           : name.find("embed") != std::string::npos   ? WeightFormat::kF16
                                                       : WeightFormat::kQ4_K;
  });
  const auto made = read(bytes);
  ASSERT_TRUE(made) << made.error().message;
  const std::string layer = "model.layers.1.";
  EXPECT_EQ(made->tensor(layer + "mlp.down_proj.weight").format, WeightFormat::kQ6_K);
  EXPECT_EQ(made->tensor(layer + "mlp.up_proj.weight").format, WeightFormat::kQ4_K);
  EXPECT_EQ(made->tensor(layer + "self_attn.q_proj.bias").format, WeightFormat::kF32);
  EXPECT_EQ(made->tensor("model.embed_tokens.weight").format, WeightFormat::kF16);
  EXPECT_EQ(made->config().dtype, DType::kF16) << "of most weights in no blocks";
  EXPECT_EQ(made->interleaved_heads(layer + "self_attn.q_proj.weight"), 0) << "Qwen2's aren't";
  uint64_t sum = 0;
  for (const TensorSpec& spec : made->tensors()) {
    sum += TensorView(nullptr, spec.format, spec.shape).size_bytes();
  }
  EXPECT_EQ(made->weight_bytes(), sum);
}

// A file of a tiny Llama whose pairs and tensors a case may change.
std::string gguf_error(const std::function<void(GgufHeader&)>& change,
                       std::string_view architecture = "llama", std::string_view left_out = "") {
  GgufHeader header;
  const auto add = [&](const std::string& key, auto value) {
    if (key != left_out) header.add(key, value);
  };
  const std::string name(architecture);
  add("general.architecture", name);
  add(name + ".context_length", uint32_t{64});
  add(name + ".embedding_length", uint32_t{32});
  add(name + ".block_count", uint32_t{1});
  add(name + ".feed_forward_length", uint32_t{32});
  add(name + ".attention.head_count", uint32_t{2});
  add(name + ".attention.layer_norm_rms_epsilon", 1e-5f);
  header.add_tensor("token_embd.weight", WeightFormat::kF32, std::vector<int64_t>{8, 32});
  std::string bytes = header.finish();
  if (change) {
    change(header);
    bytes = header.finish();
  }
  bytes.resize(bytes.size() + 4096);
  const auto made = read(bytes);
  if (made) return "no error";
  EXPECT_EQ(made.error().kind, ErrorKind::kBadInput);
  return made.error().message;
}

TEST(GgufCheckpoint, NamesWhatItDoesNotKnow) {
  const auto with = [](auto&&... arguments) {
    return gguf_error([=](GgufHeader& header) { header.add(arguments...); });
  };
  const auto tensor = [](const char* name, WeightFormat format, std::vector<int64_t> dims) {
    return gguf_error([=](GgufHeader& header) { header.add_tensor(name, format, dims); });
  };
  EXPECT_THAT(gguf_error(nullptr), HasSubstr("expected tensor \"model.layers.0.input_layernorm"));
  EXPECT_THAT(gguf_error(nullptr, "mamba"), HasSubstr("expected llama, qwen2 or gpt2"));
  EXPECT_THAT(gguf_error(nullptr, "llama", "general.architecture"), HasSubstr("found none"));
  EXPECT_THAT(gguf_error(nullptr, "llama", "llama.block_count"),
              HasSubstr("expected metadata \"llama.block_count\", found none"));
  EXPECT_THAT(with("llama.attention.sliding_window", uint32_t{7}),
              HasSubstr("found \"llama.attention.sliding_window\", which may change"));
  EXPECT_THAT(with("llama.expert_count", uint32_t{8}), HasSubstr("found 8 of them"));
  EXPECT_THAT(with("llama.rope.scaling.type", "yarn"), HasSubstr("none or linear, found \"yarn\""));
  EXPECT_THAT(with("llama.attention.key_length", "16"), HasSubstr("a whole number"));
  EXPECT_THAT(gguf_error([](GgufHeader& header) {
                header.add("llama.attention.key_length", uint32_t{16});
                header.add("llama.attention.value_length", uint32_t{8});
              }),
              HasSubstr("expected 16 at \"llama.attention.value_length\""));
  const std::vector<int32_t> unlike = {2, 1};
  EXPECT_THAT(with("llama.attention.head_count_kv", std::span<const int32_t>(unlike)),
              HasSubstr("for all layers, found several"));
  EXPECT_THAT(tensor("blk.0.ssm_a.weight", WeightFormat::kF32, {4}),
              HasSubstr("found \"blk.0.ssm_a.weight\""));
  EXPECT_THAT(tensor("blk.0.attn_norm.weight", WeightFormat::kQ8_0, {32}),
              HasSubstr("expected fp32, fp16 or bf16"));
  EXPECT_THAT(tensor("rope_freqs.weight", WeightFormat::kF32, {5}), HasSubstr("of fp32 [8]"));
  EXPECT_THAT(tensor("rope_freqs.weight", WeightFormat::kF32, {8}),
              HasSubstr("positive factors"));  // the data are zeros
}

// Flips bits, cuts, and puts extreme numbers in places of a good file; most of them in its header.
TEST(GgufCheckpoint, TenThousandChangedFilesEndInALineOrInAModel) {
  const TinyCheckpoint folder(families()[1]);
  const std::string good = gguf_file(open_tiny(folder), all_fp32);
  ASSERT_TRUE(read(good));
  const size_t header = good.find("output.weight");
  ASSERT_NE(header, std::string::npos);
  constexpr uint64_t kExtremes[] = {0,
                                    1,
                                    ~uint64_t{0},
                                    uint64_t{1} << 63,
                                    (uint64_t{1} << 63) - 1,
                                    uint64_t{1} << 32,
                                    uint64_t{1} << 61,
                                    31,
                                    33,
                                    12};
  Random random(1);
  size_t refused = 0;
  for (int trial = 0; trial < 10'000; ++trial) {
    std::string bytes = good;
    for (uint64_t change = 0; change <= random.below(3); ++change) {
      const size_t at = random.below(random.below(8) == 0 ? bytes.size() : header);
      switch (random.below(4)) {
        case 0:
          bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.below(8)));
          break;
        case 1: {
          const uint64_t extreme = kExtremes[random.below(std::size(kExtremes))];
          const size_t size = std::min<size_t>(random.below(2) == 0 ? 8 : 4, bytes.size() - at);
          std::memcpy(&bytes[at], &extreme, size);
          break;
        }
        case 2:
          bytes.resize(at + 1);
          break;
        default:
          bytes.insert(at, bytes.substr(at, random.below(40)));
      }
      if (bytes.size() < header) break;
    }
    // A copy of its own on the heap, so that the sanitizers see a read past the end.
    const std::vector<char> own(bytes.begin(), bytes.end());
    auto files = read_gguf_bytes(std::as_bytes(std::span(own)), "test.gguf");
    auto made = files ? Checkpoint::of("test.gguf", std::move(*files))
                      : Result<Checkpoint>(std::unexpected(files.error()));
    if (!made) {
      ++refused;
      ASSERT_EQ(made.error().kind, ErrorKind::kBadInput) << trial;
      ASSERT_EQ(made.error().message.find('\n'), std::string::npos) << trial;
      ASSERT_THAT(made.error().message, HasSubstr("test.gguf: expected ")) << trial;
      continue;
    }
    std::vector<float> row;
    for (const TensorSpec& spec : made->tensors()) {
      const TensorView& view = made->tensor(spec.name);
      row.resize(static_cast<size_t>(view.row_values()));
      decode_row(view, view.shape.elements() / view.row_values() - 1, row.data());
    }
  }
  EXPECT_GT(refused, 5'000u) << "most changes are to be seen";
  EXPECT_LT(refused, 10'000u) << "some change nothing but a weight";
}

}  // namespace
}  // namespace assay::engine
