// Long trials on a GPU: ten thousand compiled steps over caches whose unused positions hold NaN,
// every length from 1 to 600 over both caches, two hundred sessions. Skipped where there is no GPU.
#include <gtest/gtest.h>

#include "cuda_driver.h"
#include "engine/device/cpu/cpu_device.h"
#include "engine/device/cuda/cuda_device.h"
#include "engine/device/poisoned_tails.h"

namespace assay::engine {
namespace {

// A look is enough where a processor takes a thousand times as long.
const bool kLook = assay::test::on_the_processor();
const int64_t kSteps = kLook ? 100 : 10'000, kLengths = kLook ? 30 : 600;
const int kSessions = kLook ? 5 : 200, kSettledSessions = kSessions / 10;

int64_t bytes_in_use(cuda::Driver& driver) {
  EXPECT_TRUE(driver.synchronize());
  const auto memory = driver.memory();
  EXPECT_TRUE(memory);
  return memory ? static_cast<int64_t>(memory->total - memory->free) : 0;
}

class CudaSoak : public testing::TestWithParam<size_t> {
 protected:
  void SetUp() override {
    if (!assay::test::CudaDriver::open()) GTEST_SKIP() << "no GPU here";
  }
};

TEST_P(CudaSoak, PoisonedTailsChangeNothingAndNothingGrows) {
  CpuDevice processor({.threads = 2});
  auto opened =
      CudaDevice::open({.threads = 2, .kernel_cache = assay::test::kernels_of_all_cases()});
  ASSERT_TRUE(opened) << opened.error().message;
  cuda::Driver& driver = (*opened)->driver();
  test::PoisonedTails trial(families()[GetParam()], **opened, processor);
  const auto poison = [&](std::byte* to, size_t bytes) {
    return driver.fill(reinterpret_cast<cuda::Address>(to), test::kNanBytes, bytes);
  };
  trial.run(kSteps, {.poison = poison, .in_use = [&] { return bytes_in_use(driver); }});
}

// After prompts of 1 to 600 tokens, and after as many steps.
TEST_P(CudaSoak, EveryLengthIsRightOverBothCaches) {
  const TinyCheckpoint checkpoint(families()[GetParam()], kLengths + 1);
  Session processor = open(checkpoint, {.dtype = DType::kF32, .threads = 2});
  const auto vocab = static_cast<size_t>(processor.config().vocab_size);
  Prompt text;
  for (int64_t i = 0; i < kLengths; ++i)
    text.push_back(static_cast<int32_t>((i * 7 + i / 11) % 37));
  const PromptBatch whole = PromptBatch::of({text});
  ASSERT_TRUE(processor.prepare(1, kLengths));
  const auto expected = processor.prefill_all_logits(whole);
  ASSERT_TRUE(expected);
  const auto expect_at = [&](const Session& session, size_t length) {
    expect_near(session.logits(), std::span(*expected).subspan((length - 1) * vocab, vocab), 1e-4);
    ASSERT_FALSE(HasFailure()) << "length " << length;
  };
  for (const CacheKind cache : {CacheKind::kDynamic, CacheKind::kStatic}) {
    SessionOptions options{.cache = cache, .dtype = DType::kF32, .threads = 2, .gpu = 0};
    options.compile.prefill = options.compile.decode = true;
    options.compile.dynamic = Dynamic::kTrue;
    options.compile.verify_passes = false;
    options.compile.kernel_cache = assay::test::kernels_of_all_cases();
    Session gpu = open(checkpoint, options);
    for (size_t length = 1; length <= text.size(); ++length) {
      ASSERT_TRUE(gpu.prepare(1, kLengths));
      ASSERT_TRUE(gpu.prefill(PromptBatch::of({Prompt(text.begin(), text.begin() + length)})));
      expect_at(gpu, length);
    }
    ASSERT_TRUE(gpu.prepare(1, kLengths));
    ASSERT_TRUE(gpu.prefill(PromptBatch::of({{text[0]}})));
    for (size_t length = 2; length <= text.size(); ++length) {
      ASSERT_TRUE(gpu.decode(std::span(text).subspan(length - 1, 1)));
      expect_at(gpu, length);
    }
    EXPECT_EQ(gpu.counters().fallbacks, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Families, CudaSoak, testing::Range(size_t{0}, families().size()),
                         [](const auto& family) { return families()[family.param].name; });

TEST(CudaSoakSessions, OpenedAndClosedLeaveNothing) {
  const auto driver = assay::test::CudaDriver::open();
  if (!driver) GTEST_SKIP() << "no GPU here";
  const TinyCheckpoint checkpoint(families()[1]);
  SessionOptions options{.cache = CacheKind::kStatic, .dtype = DType::kF32, .threads = 2, .gpu = 0};
  options.compile.prefill = options.compile.decode = true;
  options.compile.verify_passes = false;
  options.compile.kernel_cache = assay::test::kernels_of_all_cases();
  const PromptBatch prompt = PromptBatch::of({{3, 10, 17, 24}});
  std::vector<Prompt> tokens;
  size_t free = 0;
  for (int i = 0; i < kSessions; ++i) {
    {
      Session session = open(checkpoint, options);
      const Generation generation = generate(session, prompt, 16);
      if (tokens.empty()) tokens = generation.tokens;
      ASSERT_EQ(generation.tokens, tokens) << "session " << i;
    }
    if (i == kSettledSessions) {
      ASSERT_EQ(driver->memory_free(free), 0);
    }
  }
  size_t after = 0;
  ASSERT_EQ(driver->memory_free(after), 0);
  EXPECT_GE(after, free);
}

}  // namespace
}  // namespace assay::engine
