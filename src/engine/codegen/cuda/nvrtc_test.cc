#include "engine/codegen/cuda/nvrtc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "engine/codegen/cpu/scratch_folder.h"
#include "engine/codegen/kernel_cache.h"

namespace assay::engine {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(PtxasLog, SaysWhatEachEntryTakes) {
  const auto entries = parse_ptxas_log(
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'first' for 'sm_90a'\n"
      "ptxas info    : Function properties for first\n"
      "    16 bytes stack frame, 12 bytes spill stores, 24 bytes spill loads\n"
      "ptxas info    : Used 255 registers, used 1 barriers, 4224 bytes smem, 376 bytes cmem[0]\n"
      "ptxas info    : Compiling entry function 'second' for 'sm_90a'\n"
      "ptxas info    : Function properties for second\n"
      "ptxas info    : (C7515) Potential Performance Loss: wgmma.mma_async instructions are "
      "serialized due to non wgmma instructions in the function 'second'\n"
      "ptxas         .     128 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 10 registers, used 0 barriers, 376 bytes cmem[0]\n");
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].entry, "first");
  EXPECT_EQ(entries[0].registers, 255);
  EXPECT_EQ(entries[0].stack_bytes, 16);
  EXPECT_EQ(entries[0].spill_store_bytes, 12);
  EXPECT_EQ(entries[0].spill_load_bytes, 24);
  EXPECT_EQ(entries[0].shared_bytes, 4224);
  EXPECT_EQ(entries[1].entry, "second");
  EXPECT_EQ(entries[1].registers, 10);
  EXPECT_EQ(entries[1].stack_bytes, 128);
  EXPECT_EQ(entries[1].shared_bytes, 0);
  EXPECT_FALSE(entries[0].serialized);
  EXPECT_TRUE(entries[1].serialized);
  EXPECT_TRUE(parse_ptxas_log("").empty());
  EXPECT_TRUE(parse_ptxas_log("Used 3 registers").empty());
}

TEST(NvrtcLibrary, MissingOneIsNamed) {
  const char* before = std::getenv("ASSAY_NVRTC");
  const std::string saved = before ? before : "";
  ::setenv("ASSAY_NVRTC", "/nowhere/libnvrtc.so", 1);
  const auto nvrtc = Nvrtc::open();
  before ? ::setenv("ASSAY_NVRTC", saved.c_str(), 1) : ::unsetenv("ASSAY_NVRTC");
  ASSERT_FALSE(nvrtc);
  EXPECT_EQ(nvrtc.error().kind, ErrorKind::kEnvironment);
  EXPECT_THAT(nvrtc.error().message, HasSubstr("/nowhere/libnvrtc.so"));
}

class NvrtcTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!nvrtc_) GTEST_SKIP() << nvrtc_.error().message;
  }
  Result<Nvrtc> nvrtc_ = Nvrtc::open();
};

TEST(NvrtcTarget, HasAKindsOwnInstructionsFromHopperOn) {
  EXPECT_EQ(nvrtc_target(89), "sm_89");
  EXPECT_EQ(nvrtc_target(90), "sm_90a");
  EXPECT_EQ(nvrtc_target(100), "sm_100a");
}

TEST_F(NvrtcTest, CompilesForEachTargetAndReports) {
  EXPECT_THAT(nvrtc_->targets(), testing::IsSupersetOf({80, 89, 90}));
  for (const int capability : nvrtc_->targets()) {
    const std::string target = nvrtc_target(capability);
    const auto cubin = nvrtc_->compile(
        "extern \"C\" __global__ void twice(float* x) {\n"
        "  __shared__ float tile[100];\n"
        "  tile[threadIdx.x] = x[threadIdx.x];\n"
        "  __syncthreads();\n"
        "  x[threadIdx.x] = tile[99 - threadIdx.x];\n"
        "}\n",
        target);
    ASSERT_TRUE(cubin) << cubin.error().message;
    EXPECT_EQ(cubin->bytes.substr(1, 3), "ELF");
    ASSERT_EQ(cubin->entries.size(), 1u);
    EXPECT_EQ(cubin->entries[0].entry, "twice");
    EXPECT_GT(cubin->entries[0].registers, 0);
    EXPECT_GE(cubin->entries[0].shared_bytes, 400);
    EXPECT_EQ(cubin->entries[0].spill_store_bytes, 0);
  }
}

TEST_F(NvrtcTest, SpillsAreSeen) {
  const auto cubin = nvrtc_->compile(
      "extern \"C\" __global__ void __launch_bounds__(1024) much(float* x) {\n"
      "  float v[200];\n"
      "  #pragma unroll\n"
      "  for (int i = 0; i < 200; ++i) v[i] = x[i * 1024 + threadIdx.x];\n"
      "  for (int k = 0; k < (int)x[0]; ++k) {\n"
      "    #pragma unroll\n"
      "    for (int i = 0; i < 200; ++i) v[i] = v[(i * 7 + 3) % 200] * 1.5f + v[i];\n"
      "  }\n"
      "  #pragma unroll\n"
      "  for (int i = 0; i < 200; ++i) x[i * 1024 + threadIdx.x] = v[i];\n"
      "}\n",
      "sm_80");
  ASSERT_TRUE(cubin) << cubin.error().message;
  EXPECT_GT(cubin->entries.at(0).spill_store_bytes, 0);
}

TEST_F(NvrtcTest, ErrorsHoldTheWholeLog) {
  const auto cubin = nvrtc_->compile("first error here;\nsecond_error;\n", "sm_80");
  ASSERT_FALSE(cubin);
  EXPECT_EQ(cubin.error().kind, ErrorKind::kEnvironment);
  EXPECT_THAT(cubin.error().message, AllOf(HasSubstr("kernel.cu(1)"), HasSubstr("kernel.cu(2)")));
  EXPECT_FALSE(nvrtc_->compile("", "sm_7"));
}

// The cache takes what any compiler makes.
TEST_F(NvrtcTest, CubinsAreKeptLikeAnyKernel) {
  const std::string source = "extern \"C\" __global__ void f() {}\n";
  const ScratchFolder scratch;
  KernelCache cache = *KernelCache::open(scratch.path() / "kernels");
  const KernelKey key{source, "sm_90a", nvrtc_->identity(), Nvrtc::flags()};
  const auto cubin = nvrtc_->compile(source, "sm_90a");
  ASSERT_TRUE(cubin) << cubin.error().message;
  ASSERT_TRUE(cache.add(key, cubin->bytes));
  EXPECT_EQ(cache.read(key), cubin->bytes);
}

}  // namespace
}  // namespace assay::engine
