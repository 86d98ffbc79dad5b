// The functions that printed kernels share, compiled as kernels are.
#include "engine/codegen/cpu/cpu_text.h"

#include <gtest/gtest.h>

#include <cfenv>
#include <cmath>
#include <limits>
#include <vector>

#include "engine/codegen/cpu/kernel_library.h"
#include "engine/codegen/cpu/scratch_folder.h"

namespace assay::engine {
namespace {

// A kernel that writes `expression` of each x, and runs over them.
class CpuText : public testing::Test {
 protected:
  std::vector<float> values_of(const std::string& expression, std::vector<float> x) {
    auto compiler = CpuCompiler::find();
    EXPECT_TRUE(compiler) << compiler.error().message;
    KernelLibrary library(*std::move(compiler), *KernelCache::open(scratch_.path() / "kernels"), 1);
    const std::vector sources = {std::string(kCpuPrelude) +
                                 "extern \"C\" void assay_run(const Args* args, long, long) {\n"
                                 "  const float* __restrict in = (const float*)args->buffers[0];\n"
                                 "  float* __restrict out = (float*)args->buffers[1];\n"
                                 "  for (long i = 0; i < args->dims[0]; ++i) {\n"
                                 "    const float x = in[i];\n"
                                 "    out[i] = " +
                                 expression + ";\n  }\n}\n"};
    const auto functions = library.load_sources(sources);
    EXPECT_TRUE(functions) << functions.error().message;
    std::vector<float> out(x.size());
    void* buffers[] = {x.data(), out.data()};
    KernelArgs args{};
    args.buffers = buffers;
    args.dims[0] = static_cast<long>(x.size());
    std::feclearexcept(FE_ALL_EXCEPT);
    (*functions)[0].run(&args, 0, 1);
    underflowed_ = std::fetestexcept(FE_UNDERFLOW) != 0;
    return out;
  }
  bool underflowed() const { return underflowed_; }

 private:
  ScratchFolder scratch_;
  bool underflowed_ = false;
};

std::vector<float> range(float from, float to, int count) {
  std::vector<float> x;
  for (int i = 0; i < count; ++i) {
    x.push_back(from + (to - from) * static_cast<float>(i) / static_cast<float>(count - 1));
  }
  return x;
}

TEST_F(CpuText, ExpIsNearTheLibrarys) {
  const std::vector<float> x = range(-86.9f, 86.9f, 4001);
  const std::vector<float> found = values_of("exp_f(x)", x);
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_NEAR(found[i] / std::exp(static_cast<double>(x[i])), 1, 3e-7) << x[i];
  }
}

TEST_F(CpuText, ExpOfWhatIsTooLargeIsTheBounds) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> x = {87.0f, 1e6f, kInf, -87.0f, -1e6f, -kInf, 0.0f, -0.0f, nan, -nan};
  const std::vector<float> found = values_of("exp_f(x)", x);
  EXPECT_EQ(found[1], found[0]);
  EXPECT_EQ(found[2], found[0]);
  EXPECT_EQ(found[4], found[3]);
  EXPECT_EQ(found[5], found[3]);
  EXPECT_GT(found[3], 0);
  EXPECT_EQ(found[6], 1);
  EXPECT_EQ(found[7], 1);
  EXPECT_TRUE(std::isnan(found[8]));
  EXPECT_TRUE(std::isnan(found[9]));
}

// An operation that leaves a subnormal number costs Intel's processors 150 cycles. A compiler that
// works out both sides of a bound on x divides by e^88 in every lane.
TEST_F(CpuText, ActivationsOfUsualValuesMakeNoSubnormalNumbers) {
  std::vector<float> x = range(-4, 4, 4097);  // neither 0 nor next to it
  for (float& value : x) value += 0.0001f;
  for (const char* expression : {"x / (1.0f + exp_f(-x))", "0.5f * x * erfc_f(-0.70710678f * x)",
                                 "x / (1.0f + exp_f(-1.5957691f * (x + 0.044715f * x * x * x)))"}) {
    const std::vector<float> found = values_of(expression, x);
    EXPECT_FALSE(underflowed()) << expression;
    EXPECT_NEAR(found.back(), 4, 0.08) << expression;
  }
}

}  // namespace
}  // namespace assay::engine
