// The host's side of a GPU, without one: sessions on a driver of the tests' own, each of whose
// calls is made to fail once. Kernels do nothing there; tests/device/ runs them on a GPU.
#include "engine/device/cuda/cuda_device.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "engine/session/tiny_checkpoint.h"

namespace assay::engine {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr int kIllegalAddress = 700, kOutOfMemory = 2;

class FakeCuda {
  template <typename Function, typename... Arguments>
  auto call(const char* name, Arguments... arguments) {
    return reinterpret_cast<Function>(dlsym(library_, name))(arguments...);
  }

 public:
  FakeCuda() : library_(dlopen(FAKE_CUDA, RTLD_NOW | RTLD_LOCAL)) {
    EXPECT_NE(library_, nullptr) << dlerror();
    setenv("ASSAY_CUDA_DRIVER", FAKE_CUDA, 1);
    setenv("ASSAY_NVRTC", FAKE_CUDA, 1);
    unsetenv("FAKE_NVRTC_FAILS");
  }
  ~FakeCuda() {  // other tests of this process find what is really here
    unsetenv("ASSAY_CUDA_DRIVER");
    unsetenv("ASSAY_NVRTC");
    unsetenv("FAKE_NVRTC_FAILS");
  }

  // From here on; `at`: the call that fails, counted from 1; 0: none.
  void reset(int at = 0, int status = 0) {
    call<void (*)(int, int)>("fake_cuda_reset", at, status);
  }
  int live() { return call<int (*)()>("fake_cuda_live"); }
  int calls() { return call<int (*)()>("fake_cuda_calls"); }
  std::string name(int number) { return call<const char* (*)(int)>("fake_cuda_call", number); }
  long launches() { return call<long (*)()>("fake_cuda_launches"); }
  long recorded() { return call<long (*)()>("fake_cuda_recorded"); }
  long replays() { return call<long (*)()>("fake_cuda_replays"); }

 private:
  void* library_;
};

class CudaDeviceTest : public ::testing::Test {
 protected:
  SessionOptions options(CacheKind cache, bool compiled) {
    SessionOptions options{.cache = cache, .threads = 1, .gpu = 0};
    options.compile.prefill = options.compile.decode = compiled;
    options.compile.dynamic = Dynamic::kTrue;
    options.compile.verify_passes = false;
    return options;
  }

  // A prompt and four steps; the first error.
  Status generate(const SessionOptions& options) {
    ASSAY_TRY(Session session, Session::open(checkpoint_.folder(), options));
    ASSAY_CHECK(session.prepare(2, 12));
    ASSAY_CHECK(session.prefill(PromptBatch::of({{1, 2, 3}, {4, 5}})));
    for (int step = 0; step < 4; ++step) {
      const std::vector<int32_t> tokens(session.next_tokens().begin(), session.next_tokens().end());
      ASSAY_CHECK(session.decode(tokens));
    }
    ASSAY_CHECK(session.decode_greedy(2, [](auto) {}));
    fallbacks_ = session.counters().fallbacks;
    return {};
  }

  FakeCuda fake_;
  TinyCheckpoint checkpoint_{families()[1]};
  int64_t fallbacks_ = 0;
};

TEST_F(CudaDeviceTest, RecordsAStepOnceAndReplaysIt) {
  fake_.reset();
  ASSERT_TRUE(generate(options(CacheKind::kStatic, true)));
  // The prompt and the first step are launched; the second is recorded and runs with the others.
  EXPECT_GT(fake_.recorded(), 0);
  EXPECT_EQ(fake_.replays(), 5);
  EXPECT_GE(fake_.launches(), 2 * fake_.recorded() - 1);  // a prompt feeds no next step
  EXPECT_EQ(fallbacks_, 0);
  EXPECT_EQ(fake_.live(), 0);
}

// The host is at most some steps behind, and waits for nothing else.
TEST_F(CudaDeviceTest, StepsThatFeedThemselvesAreReplayedWithoutUploads) {
  fake_.reset();
  auto session = Session::open(checkpoint_.folder(), options(CacheKind::kStatic, true));
  ASSERT_TRUE(session);
  ASSERT_TRUE(session->prepare(2, 40));
  ASSERT_TRUE(session->prefill(PromptBatch::of({{1, 2, 3}, {4, 5}})));
  int64_t steps = 0;
  ASSERT_TRUE(session->decode_greedy(4, [&](auto) { ++steps; }));
  const long before = fake_.replays();
  const int calls = fake_.calls();
  ASSERT_TRUE(session->decode_greedy(20, [&](auto) { ++steps; }));
  EXPECT_EQ(steps, 24);
  EXPECT_EQ(fake_.replays(), before + 20);
  int uploads = 0;
  for (int call = calls + 1; call <= fake_.calls(); ++call) {
    uploads += fake_.name(call) == "cuMemcpyHtoDAsync_v2" ? 1 : 0;
  }
  EXPECT_LE(uploads, 4) << "ids, positions, padding and sizes, once";
}

TEST_F(CudaDeviceTest, RecordsNothingOfACacheThatGrowsNorOfEagerSteps) {
  for (const auto& asked :
       {options(CacheKind::kDynamic, true), options(CacheKind::kStatic, false)}) {
    fake_.reset();
    ASSERT_TRUE(generate(asked));
    EXPECT_EQ(fake_.recorded(), 0);
    EXPECT_EQ(fake_.replays(), 0);
    EXPECT_GT(fake_.launches(), 0);
    EXPECT_EQ(fake_.live(), 0);
  }
}

// Every call once, with a lost context and with the memory at its end: an error that names the
// call, nothing that stays behind, and the next session works.
TEST_F(CudaDeviceTest, SurvivesTheFailureOfEveryCall) {
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
                                               HasSubstr("CUDA_ERROR_OUT_OF_MEMORY")))
            << "call " << at << ", " << fake_.name(at);
      }
      EXPECT_GT(failures, calls / 2);
      fake_.reset();
      EXPECT_TRUE(generate(asked));
    }
  }
}

TEST_F(CudaDeviceTest, MemoryThatEndsSaysWhatWasAskedForAndWhatIsFree) {
  fake_.reset();
  auto device = CudaDevice::open({});
  ASSERT_TRUE(device);
  fake_.reset(1, kOutOfMemory);
  const auto block = (*device)->memory().allocate(4096);
  ASSERT_FALSE(block);
  EXPECT_EQ(
      block.error().message,
      "cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY: expected 4096 bytes on Fake GPU, found 1000 of "
      "2000 free");
}

TEST_F(CudaDeviceTest, NamesTheGpuThatIsNotThere) {
  fake_.reset();
  const auto device = CudaDevice::open({.ordinal = 3, .threads = 1, .kernel_cache = {}});
  ASSERT_FALSE(device);
  EXPECT_EQ(device.error().message,
            "device: expected one of the 1 GPUs of this machine, found cuda:3");
  EXPECT_EQ(fake_.live(), 0);
}

TEST_F(CudaDeviceTest, WithoutADriverNothingIsOpened) {
  setenv("ASSAY_CUDA_DRIVER", "/nonexistent/libcuda.so.1", 1);
  const auto device = CudaDevice::open({});
  ASSERT_FALSE(device);
  EXPECT_EQ(device.error().kind, ErrorKind::kEnvironment);
  EXPECT_THAT(device.error().message, HasSubstr("expected /nonexistent/libcuda.so.1, found none"));
}

TEST_F(CudaDeviceTest, ACompilerThatFailsIsSaidWhole) {
  setenv("FAKE_NVRTC_FAILS", "1", 1);
  fake_.reset();
  const Status ran = generate(options(CacheKind::kStatic, true));
  ASSERT_FALSE(ran);  // eager needs the compiler as well
  EXPECT_THAT(ran.error().message, HasSubstr("fake log"));
  EXPECT_EQ(fake_.live(), 0);
}

}  // namespace
}  // namespace assay::engine
