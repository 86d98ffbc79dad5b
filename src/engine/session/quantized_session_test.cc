// Sessions on quantised safetensors: the logits of their decoded values, eager and compiled.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/model/tiny_quantized.h"
#include "engine/session/tiny_checkpoint.h"

namespace assay::engine {
namespace {

Generation quantized_run(const TinyQuantized& made, SessionOptions options) {
  auto session = Session::open(made.folder(), options);
  EXPECT_TRUE(session) << session.error().message;
  if (!session) return {};
  return generate(*session, PromptBatch::of({{3, 1, 4, 1, 5, 9, 2, 6, 5}, {2, 7, 1}}), 3);
}

// Root of the mean squared distance of the prompt's logits, over that of the expected ones.
double far_from(const Generation& found, const Generation& expected) {
  double error = 0, size = 0;
  for (size_t i = 0; i < expected.logits.front().size(); ++i) {
    const double value = expected.logits.front()[i];
    error += std::pow(found.logits.front()[i] - value, 2);
    size += value * value;
  }
  return std::sqrt(error / size);
}

// Products with blocks round x to 8 bits; without that they differ by fp32's rounding alone.
TEST(QuantizedSession, GivesTheLogitsOfItsValues) {
  constexpr double kOfRounding = 0.03;
  for (const TinyLayout& layout : tiny_layouts()) {
    SCOPED_TRACE(name_of(layout));
    const TinyQuantized made(layout);
    const Generation expected = quantized_run(made, {.dtype = DType::kF32, .reference_ops = true});
    if (testing::Test::HasFailure()) return;
    EXPECT_LT(far_from(quantized_run(made, {.dtype = DType::kF32}), expected), 1e-4);
    EXPECT_LT(far_from(quantized_run(made, {.reference_ops = true}), expected), 1e-4);
    EXPECT_LT(far_from(quantized_run(made, {}), expected), kOfRounding);
    SessionOptions compiled;
    compiled.compile.prefill = compiled.compile.decode = true;
    EXPECT_LT(far_from(quantized_run(made, compiled), expected), kOfRounding);
  }
}

TEST(QuantizedSession, NamesItsFormat) {
  const TinyQuantized made({.method = QuantizationMethod::kGptq, .group = 64, .act_order = true});
  auto session = Session::open(made.folder(), {});
  ASSERT_TRUE(session) << session.error().message;
  EXPECT_EQ(session->model().block_formats(), "int4_g64");
  EXPECT_EQ(session->model().quantization(), "GPTQ");
  EXPECT_EQ(session->model().dtype(), DType::kF16);
}

}  // namespace
}  // namespace assay::engine
