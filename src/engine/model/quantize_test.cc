// Quantised files: the formats of a mix, the bytes of any source of the same weights, and logits
// near the model's.
#include "engine/model/quantize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/files/files.h"
#include "engine/model/gguf_checkpoint.h"
#include "engine/model/tiny_gguf.h"
#include "engine/session/tiny_checkpoint.h"

namespace assay::engine {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class QuantizeTest : public testing::TestWithParam<size_t> {
 protected:
  ~QuantizeTest() override {
    for (const fs::path& path : made_) fs::remove(path);
  }
  fs::path path_of(const std::string& name) {
    made_.push_back(folder_.folder().string() + "-" + name + ".gguf");
    return made_.back();
  }
  fs::path quantized(const fs::path& from, const std::string& type, const std::string& name) {
    const fs::path to = path_of(name);
    const auto made = quantize_model(from, type, to);
    EXPECT_TRUE(made) << made.error().message;
    return to;
  }

  TinyCheckpoint folder_{wide_families()[GetParam()]};
  std::vector<fs::path> made_;
};

std::vector<float> logits(const fs::path& model) {
  auto session = Session::open(model, {});
  EXPECT_TRUE(session) << session.error().message;
  if (!session) return {};
  return generate(*session, PromptBatch::of({{3, 1, 4, 1, 5, 9, 2, 6}}), 0).logits.front();
}

double relative_distance(const std::vector<float>& a, const std::vector<float>& b) {
  double error = 0, size = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    error += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
    size += double{b[i]} * b[i];
  }
  return std::sqrt(error / size);
}

TEST_P(QuantizeTest, LogitsComeNearerWithMoreBits) {
  const std::vector<float> expected = logits(folder_.folder());
  const double q8 = relative_distance(logits(quantized(folder_.folder(), "q8_0", "q8")), expected);
  const double q4 =
      relative_distance(logits(quantized(folder_.folder(), "q4_k_m", "q4k")), expected);
  EXPECT_GT(q8, 0) << "nothing was rounded";
  EXPECT_LT(q8, 0.03);
  EXPECT_LT(q4, 0.4);
  EXPECT_LT(q8, q4 / 4);
}

TEST_P(QuantizeTest, ItsMixHasTheNameThatLlamaCppShows) {
  for (const auto& [type, name] : {std::pair<const char*, const char*>{"q8_0", "Q8_0"},
                                   {"q4_0", "Q4_0"},
                                   {"q4_k_m", "Q4_K - Medium"},
                                   {"iq4_nl", "IQ4_NL - 4.5 bpw"},
                                   {"fp32", ""}}) {
    const auto made = Checkpoint::open(quantized(folder_.folder(), type, type));
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ(made->quantization(), name);
  }
}

TEST_P(QuantizeTest, AFolderAndAFileOfTheSameWeightsGiveTheSameTensors) {
  const auto checkpoint = Checkpoint::open(folder_.folder());
  ASSERT_TRUE(checkpoint);
  const fs::path plain = path_of("plain");
  ASSERT_TRUE(write_file(
      plain, gguf_file(*checkpoint, [](const std::string&) { return WeightFormat::kF32; })));
  for (const std::string& type : quantized_types()) {
    SCOPED_TRACE(type);
    const auto a = read_file(quantized(folder_.folder(), type, "a"));
    const auto again = read_file(quantized(folder_.folder(), type, "again"));
    ASSERT_TRUE(a && again);
    EXPECT_EQ(*a, *again);
    const auto from_folder = Checkpoint::open(made_[made_.size() - 2]);
    const auto from_file = Checkpoint::open(quantized(plain, type, "b"));
    ASSERT_TRUE(from_folder) << from_folder.error().message;
    ASSERT_TRUE(from_file) << from_file.error().message;
    for (const TensorSpec& spec : from_folder->tensors()) {
      const TensorView& x = from_folder->tensor(spec.name);
      const TensorView& y = from_file->tensor(spec.name);
      ASSERT_EQ(x.format, y.format) << spec.name;
      ASSERT_TRUE(std::equal(x.data, x.data + x.size_bytes(), y.data)) << spec.name;
    }
  }
}

TEST_P(QuantizeTest, AMixHasTheFormatsOfItsName) {
  const auto made = Checkpoint::open(quantized(folder_.folder(), "q4_k_m", "mix"));
  ASSERT_TRUE(made) << made.error().message;
  const bool gpt2 = made->config().architecture == Architecture::kGpt2;
  const auto format = [&](const std::string& name) { return made->tensor(name).format; };
  if (gpt2) {
    EXPECT_EQ(format("transformer.wte.weight"), WeightFormat::kQ6_K) << "it is the head too";
    EXPECT_EQ(format("transformer.wpe.weight"), WeightFormat::kF32);
    EXPECT_EQ(format("transformer.h.0.attn.c_attn.weight"), WeightFormat::kQ5_K);
    EXPECT_EQ(format("transformer.h.0.mlp.c_fc.weight"), WeightFormat::kQ4_K);
    return;
  }
  const bool tied = made->config().tied_embeddings;
  EXPECT_EQ(format("model.embed_tokens.weight"), tied ? WeightFormat::kQ6_K : WeightFormat::kQ4_K);
  if (!tied) {
    EXPECT_EQ(format("lm_head.weight"), WeightFormat::kQ6_K);
  }
  EXPECT_EQ(format("model.norm.weight"), WeightFormat::kF32);
  EXPECT_EQ(format("model.layers.0.self_attn.q_proj.weight"), WeightFormat::kQ4_K);
  EXPECT_EQ(format("model.layers.1.mlp.down_proj.weight"), WeightFormat::kQ6_K);  // the last layer
}

INSTANTIATE_TEST_SUITE_P(Families, QuantizeTest, testing::Values(0, 1, 2));

TEST(Quantize, RowsOfNoWholeBlocksTakeSmallerOnes) {
  const TinyCheckpoint folder(families()[1]);  // widths of 20, 24 and 28
  const fs::path to = folder.folder().string() + "-small.gguf";
  ASSERT_TRUE(quantize_model(folder.folder(), "q4_k_m", to));
  const auto made = Checkpoint::open(to);
  fs::remove(to);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->tensor("lm_head.weight").format, WeightFormat::kF16);
}

TEST(Quantize, RefusesWhatItCannotWrite) {
  const TinyCheckpoint folder(families()[0]);
  const auto unknown = quantize_model(folder.folder(), "q3_k", "x.gguf");
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().message, HasSubstr("q8_0, q6_k, q5_k_m, q5_1, q5_0, q4_k_m"));
  EXPECT_FALSE(quantize_model(folder.folder() / "nothing", "q8_0", "x.gguf"));
  const auto checkpoint = Checkpoint::open(folder.folder());
  std::string bytes = gguf_file(*checkpoint, [](const std::string&) { return WeightFormat::kF32; });
  const float nan = std::nanf("");
  bytes.replace(bytes.size() - 32, 4, reinterpret_cast<const char*>(&nan), 4);
  const fs::path broken = folder.folder().string() + "-nan.gguf";
  const fs::path to = folder.folder().string() + "-out.gguf";
  ASSERT_TRUE(write_file(broken, bytes));
  const auto made = quantize_model(broken, "q8_0", to);
  fs::remove(broken);
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message, HasSubstr("expected finite weights"));
  EXPECT_FALSE(fs::exists(to));
}

}  // namespace
}  // namespace assay::engine
