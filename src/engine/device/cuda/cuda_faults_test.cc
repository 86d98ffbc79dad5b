// Failures of a GPU: each call of the tests' driver is made to fail once, and an error says what
// was asked for and what was there.
#include "engine/device/cuda/cuda_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "engine/device/cuda/fake_gpu.h"

namespace assay::engine {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

class CudaFaults : public CudaDeviceTest {};

// Every call once, with a lost context and with the memory at its end: an error that names the
// call, nothing that stays behind, and the next session works.
TEST_F(CudaFaults, SurvivesTheFailureOfEveryCall) {
  for (const bool compiled : {true, false}) {
    const SessionOptions asked = options(CacheKind::kStatic, compiled);
    fake_.reset();
    ASSERT_TRUE(generate(asked));
    const int calls = fake_.calls();
    ASSERT_GT(calls, 100);
    for (const int status : {kIllegalAddress, kOutOfMemory}) {
      int failures = 0;
      for (int at = 1; at <= calls; ++at) {
        fake_.reset(at, status);
        const Status ran = generate(asked);
        ASSERT_EQ(fake_.live(), 0) << "call " << at << ", " << fake_.name(at);
        if (ran) continue;  // what gives back can't fail; a failed compilation falls back
        ++failures;
        EXPECT_EQ(ran.error().kind, ErrorKind::kEnvironment);
        EXPECT_THAT(ran.error().message, AnyOf(HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"),
                                               HasSubstr("CUDA_ERROR_OUT_OF_MEMORY"),
                                               HasSubstr("cublasLtMatmul: CUBLAS_STATUS_")))
            << "call " << at << ", " << fake_.name(at);
      }
      EXPECT_GT(failures, calls / 2);
      fake_.reset();
      EXPECT_TRUE(generate(asked));
    }
  }
}

TEST_F(CudaFaults, MemoryThatEndsSaysWhatWasAskedForAndWhatIsFree) {
  fake_.reset();
  setenv("FAKE_CUDA_MEMORY", "10000", 1);
  {
    auto device = CudaDevice::open({});
    ASSERT_TRUE(device);
    const auto held = (*device)->memory().allocate(4096);
    ASSERT_TRUE(held);
    const auto block = (*device)->memory().allocate(8192);
    ASSERT_FALSE(block);
    EXPECT_EQ(block.error().message,
              "cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY: expected 8192 bytes on Fake GPU, found "
              "5.90 kB of 10.00 kB free; this process holds 4.10 kB: weights 0 B, caches and "
              "eager outputs 4.10 kB, kept for them 0 B, values of steps 0 B; the driver and other "
              "processes hold 0 B");
    EXPECT_EQ((*device)->fault().kind, DeviceFault::Kind::kOutOfMemory);
    (*device)->forget_fault();
    EXPECT_EQ((*device)->fault().kind, DeviceFault::Kind::kNone);
  }
  unsetenv("FAKE_CUDA_MEMORY");
}

TEST_F(CudaFaults, AMatrixThatCantBeMappedIsAnError) {
  fake_.reset();
  const auto driver = cuda::Driver::open();
  ASSERT_TRUE(driver);
  EXPECT_TRUE((*driver)->map(4096, 100, 64, 128));
  for (const cuda::Address begin : {4096, 4104}) {  // the second isn't a multiple of 16 bytes
    fake_.reset(begin == 4096 ? 1 : 0, kOutOfMemory);
    const auto map = (*driver)->map(begin, 100, 64, 128);
    ASSERT_FALSE(map);
    EXPECT_THAT(map.error().message, HasSubstr("cuTensorMapEncodeTiled: CUDA_ERROR_"));
  }
}

TEST_F(CudaFaults, ALostContextStaysLost) {
  fake_.reset();
  auto device = CudaDevice::open({});
  ASSERT_TRUE(device);
  fake_.reset(1, kIllegalAddress);
  EXPECT_FALSE((*device)->memory().allocate(16));
  (*device)->forget_fault();
  EXPECT_EQ((*device)->fault().kind, DeviceFault::Kind::kLost);
  EXPECT_EQ((*device)->fault().name, "CUDA_ERROR_ILLEGAL_ADDRESS");
  EXPECT_FALSE((*device)->start_timer());
}

// It is asked whether it lives while its tokens are awaited, and again while it is at work.
TEST_F(CudaFaults, AGpuThatIsLostWithinAStepIsAnError) {
  constexpr int kNotReady = 600;
  const SessionOptions asked = options(CacheKind::kStatic, true);
  fake_.reset();
  ASSERT_TRUE(generate(asked));
  std::vector<int> queries;
  for (int at = 1; at <= fake_.calls(); ++at) {
    if (fake_.name(at) == "cuStreamQuery") queries.push_back(at);
  }
  ASSERT_GE(queries.size(), 7u);  // a row each, of a prompt and six steps
  fake_.reset(queries.front(), kNotReady);
  EXPECT_TRUE(generate(asked));
  EXPECT_EQ(fallbacks_, 0);
  fake_.reset(queries.front(), kIllegalAddress);
  const Status lost = generate(asked);
  ASSERT_FALSE(lost);
  EXPECT_THAT(lost.error().message, HasSubstr("cuStreamQuery: CUDA_ERROR_ILLEGAL_ADDRESS"));
}

// A failure of a recorded step leaves eager steps on the same GPU, with the reason.
TEST_F(CudaFaults, AStepThatCantBeRecordedRunsEager) {
  constexpr int kUnsupported = 900;
  const SessionOptions asked = options(CacheKind::kStatic, true);
  fake_.reset();
  ASSERT_TRUE(generate(asked));
  std::vector<int> capturing;
  for (int at = 1; at <= fake_.calls(); ++at) {
    for (const char* name : {"cuStreamBeginCapture_v2", "cuStreamEndCapture",
                             "cuGraphInstantiateWithFlags", "cuGraphLaunch"}) {
      if (fake_.name(at) == name) capturing.push_back(at);
    }
  }
  ASSERT_EQ(capturing.size(), 2 * 3u + 5);  // of the prompt and a step; and five replays
  for (const int at : capturing) {
    fake_.reset(at, kUnsupported);
    ASSERT_TRUE(generate(asked)) << at;
    EXPECT_GT(fallbacks_, 0) << at;
    EXPECT_THAT(reason_, HasSubstr("CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED")) << at;
    EXPECT_EQ(fake_.live(), 0) << at;
  }
}

// Steps that can't be recorded several at a time are replayed one by one.
TEST_F(CudaFaults, AChainThatCantBeRecordedLeavesItsSteps) {
  constexpr int kOutOfMemory = 2;
  constexpr int64_t kSteps = 20;
  const SessionOptions asked = options(CacheKind::kStatic, true);
  const auto ends_well = [&] {
    auto session = Session::open(checkpoint_.folder(), asked);
    if (!session) return false;
    int64_t arrived = 0;
    const bool ran = session->prepare(2, 40) &&
                     session->prefill(PromptBatch::of({{1, 2, 3}, {4, 5}})) &&
                     session->decode_greedy(kSteps, [&](auto) { return ++arrived > 0; });
    EXPECT_EQ(session->counters().fallbacks, 0);
    EXPECT_EQ(session->device().fault().kind, DeviceFault::Kind::kNone);
    return ran && arrived == kSteps;
  };
  fake_.reset();
  ASSERT_TRUE(ends_well());
  std::vector<int> instantiated;
  for (int at = 1; at <= fake_.calls(); ++at) {
    if (fake_.name(at) == "cuGraphInstantiateWithFlags") instantiated.push_back(at);
  }
  ASSERT_EQ(instantiated.size(), 3u) << "of the prompt, a step and eight";
  const long together = fake_.replays();
  fake_.reset(instantiated.back(), kOutOfMemory);
  EXPECT_TRUE(ends_well());
  EXPECT_EQ(fake_.replays(), together + 2 * 7);
  EXPECT_EQ(fake_.live(), 0);
}

// A launch that fails within a step over a cache that grows: the run is made again.
TEST_F(CudaFaults, AStepThatFailedHalfWayIsMadeAgainOverBothCaches) {
  constexpr int kInvalidValue = 1;
  for (const CacheKind cache : {CacheKind::kStatic, CacheKind::kDynamic}) {
    const SessionOptions asked = options(cache, true);
    fake_.reset();
    ASSERT_TRUE(generate(asked));
    const int calls = fake_.calls();
    int failed = 0;
    for (int at = 1; at <= calls; ++at) {
      fake_.reset();
      if (fake_.name(at) != "cuLaunchKernelEx") continue;
      fake_.reset(at, kInvalidValue);
      ASSERT_TRUE(generate(asked)) << at;
      EXPECT_GT(fallbacks_, 0) << at;
      EXPECT_EQ(fake_.live(), 0) << at;
      fake_.reset();
      ASSERT_TRUE(generate(asked));  // so that name(at) is as it was
      ++failed;
    }
    EXPECT_GT(failed, 20);
  }
}

// Eager needs other kernels than a fused product.
TEST_F(CudaFaults, AFusedKernelThatDoesntCompileFallsBackWithTheWholeLog) {
  fake_.reset();
  setenv("FAKE_NVRTC_FAILS", "NORMED = 1", 1);
  ASSERT_TRUE(generate(options(CacheKind::kStatic, true)));
  EXPECT_EQ(fallbacks_, 7);  // the prompt and all steps
  EXPECT_THAT(reason_, HasSubstr("fake log"));
  EXPECT_EQ(fake_.live(), 0);
}

TEST_F(CudaFaults, NamesTheGpuThatIsNotThere) {
  fake_.reset();
  const auto device = CudaDevice::open({.ordinal = 3, .threads = 1, .kernel_cache = {}});
  ASSERT_FALSE(device);
  EXPECT_EQ(device.error().message,
            "device: expected one of this machine's GPUs (it has 1), found cuda:3");
  EXPECT_EQ(fake_.live(), 0);
}

TEST_F(CudaFaults, WithoutADriverNothingIsOpened) {
  setenv("ASSAY_CUDA_DRIVER", "/nonexistent/libcuda.so.1", 1);
  const auto device = CudaDevice::open({});
  ASSERT_FALSE(device);
  EXPECT_EQ(device.error().kind, ErrorKind::kEnvironment);
  EXPECT_THAT(device.error().message, HasSubstr("expected /nonexistent/libcuda.so.1, found none"));
}

TEST_F(CudaFaults, ACompilerThatFailsIsSaidWhole) {
  setenv("FAKE_NVRTC_FAILS", "", 1);
  fake_.reset();
  const Status ran = generate(options(CacheKind::kStatic, true));
  ASSERT_FALSE(ran);  // eager needs the compiler as well
  EXPECT_THAT(ran.error().message, HasSubstr("fake log"));
  EXPECT_EQ(fake_.live(), 0);
}

}  // namespace
}  // namespace assay::engine
