// Rounding to e4m3, and folders written so.
#include "engine/model/quantize_fp8.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "engine/model/tiny_gguf.h"
#include "engine/model/tiny_quantized.h"

namespace assay::engine {
namespace {

namespace fs = std::filesystem;

// Against the nearest of all codes, for values of all sizes, those between two codes, and their
// neighbours.
TEST(E4m3, IsTheNearestCode) {
  std::vector<float> values = {
      0.0f, 500, 448, 449, 1e30f, 1e-30f, std::numeric_limits<float>::infinity()};
  for (int code = 0; code < 0x7e; ++code) {
    const float low = e4m3_to_f32(static_cast<uint8_t>(code));
    const float high = e4m3_to_f32(static_cast<uint8_t>(code + 1));
    const float middle = (low + high) / 2;
    for (const float value :
         {low, middle, std::nextafterf(middle, low), std::nextafterf(middle, high)}) {
      values.push_back(value);
    }
  }
  for (const float value : values) {
    uint8_t best = 0;
    for (uint8_t code = 0; code < 0x7f; ++code) {
      const double off = std::fabs(double{e4m3_to_f32(code)} - value);
      const double least = std::fabs(double{e4m3_to_f32(best)} - value);
      if (off < least || (off == least && code % 2 == 0)) best = code;
    }
    if (value > 448) best = 0x7e;
    EXPECT_EQ(f32_to_e4m3(value), best) << value;
    EXPECT_EQ(f32_to_e4m3(-value), best | 0x80) << value;
  }
  EXPECT_TRUE(std::isnan(e4m3_to_f32(f32_to_e4m3(std::nanf("")))));
}

class Fp8Folder {
 public:
  explicit Fp8Folder(const std::string& name)
      : path(fs::path(testing::TempDir()) / fmt::format("assay-fp8-{}-{}", name, getpid())) {
    fs::remove_all(path);
  }
  ~Fp8Folder() { fs::remove_all(path); }
  const fs::path path;
};

TEST(QuantizeFp8, WritesWeightsNearTheModels) {
  for (const size_t family : {1, 2}) {
    const TinyCheckpoint folder(wide_families()[family]);
    const Fp8Folder to("a"), again("b");
    const auto made = quantize_to_fp8(folder.folder(), to.path);
    ASSERT_TRUE(made) << made.error().message;
    ASSERT_TRUE(quantize_to_fp8(folder.folder(), again.path));
    EXPECT_EQ(*read_file(to.path / "model.safetensors"),
              *read_file(again.path / "model.safetensors"));
    const auto before = Checkpoint::open(folder.folder()), after = Checkpoint::open(to.path);
    ASSERT_TRUE(after) << after.error().message;
    EXPECT_EQ(made->parameters, before->parameter_count());
    for (const TensorSpec& spec : after->tensors()) {
      const auto width = static_cast<size_t>(spec.shape[spec.shape.rank() - 1]);
      const bool rounded = traits(spec.format).in_blocks();
      EXPECT_EQ(rounded, spec.shape.rank() == 2 && spec.name.find("layers") != std::string::npos);
      std::vector<float> expected(width), found(width);
      for (int64_t row = 0; row * static_cast<int64_t>(width) < spec.shape.elements(); ++row) {
        before->decode_row(spec.name, row, expected.data());
        after->decode_row(spec.name, row, found.data());
        float largest = 0;
        for (const float value : expected) largest = std::max(largest, std::fabs(value));
        for (size_t i = 0; i < width; ++i) {
          // Half of the last of three bits, or of the least step of the row's scale.
          const float step = std::max(std::fabs(expected[i]) / 16, largest / 448 / 1024) * 1.001f;
          ASSERT_NEAR(found[i], expected[i], rounded ? step : 0) << spec.name;
        }
      }
    }
  }
}

TEST(QuantizeFp8, RefusesOtherModelsAndFullFolders) {
  const TinyCheckpoint gpt2(wide_families()[0]), llama(wide_families()[1]);
  const Fp8Folder to("refused");
  const auto made = quantize_to_fp8(gpt2.folder(), to.path);
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message, testing::HasSubstr("found gpt2"));
  EXPECT_FALSE(fs::exists(to.path));
  const auto full = quantize_to_fp8(llama.folder(), gpt2.folder());
  ASSERT_FALSE(full);
  EXPECT_THAT(full.error().message, testing::HasSubstr("new or empty folder"));
}

}  // namespace
}  // namespace assay::engine
