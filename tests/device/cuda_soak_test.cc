// Long trials on a GPU: ten thousand compiled steps over caches whose unused positions hold NaN,
// every length from 1 to 600 over both caches, two hundred sessions. Skipped where there is no GPU.
#include <gtest/gtest.h>

#include "base/random.h"
#include "cuda_driver.h"
#include "engine/compiled/graph_compiler.h"
#include "engine/device/cpu/cpu_device.h"
#include "engine/device/cuda/cuda_device.h"
#include "engine/graph/architectures.h"
#include "engine/session/tiny_checkpoint.h"

namespace assay::engine {
namespace {

constexpr int64_t kSteps = 10'000;
constexpr int64_t kSettled = 1'000;  // steps after which nothing may grow
constexpr int64_t kBatch = 2;
constexpr int64_t kCapacity = 32;
constexpr int64_t kLengths = 600;
constexpr int kSessions = 200, kSettledSessions = 20;
constexpr unsigned char kNanBytes = 0xff;  // of any floating-point type

// Kernels of all cases, so that each is compiled once.
std::filesystem::path kernel_cache() {
  return std::filesystem::path(testing::TempDir()) / fmt::format("assay-gpu-kernels-{}", getuid());
}

size_t free_bytes(cuda::Driver& driver) {
  EXPECT_TRUE(driver.synchronize());
  const auto memory = driver.memory();
  EXPECT_TRUE(memory);
  return memory ? memory->free : 0;
}

// What lies behind the positions in use must not matter.
void poison_tail(KvCache& cache, cuda::Driver& driver) {
  for (int64_t layer = 0; layer < cache.shape().layers; ++layer) {
    for (const CachePart part : {CachePart::kKeys, CachePart::kValues}) {
      const auto view = cache.extend(layer, part, 1);
      ASSERT_TRUE(view);
      const int64_t unused = (view->capacity - cache.length()) * view->head_dim;
      for (int64_t head = 0; head < view->batch * view->kv_heads; ++head) {
        float* tail = view->f32() + head * view->head_stride + cache.length() * view->head_dim;
        ASSERT_TRUE(driver.fill(reinterpret_cast<cuda::Address>(tail), kNanBytes,
                                static_cast<size_t>(unused) * sizeof(float)));
      }
    }
  }
}

class CudaSoak : public testing::TestWithParam<size_t> {
 protected:
  void SetUp() override {
    if (!test::CudaDriver::open()) GTEST_SKIP() << "no GPU here";
  }
};

TEST_P(CudaSoak, PoisonedTailsChangeNothingAndNothingGrows) {
  const TinyCheckpoint folder(families()[GetParam()]);
  CpuDevice processor({.threads = 2});
  auto opened = CudaDevice::open({.threads = 2, .kernel_cache = kernel_cache()});
  ASSERT_TRUE(opened) << opened.error().message;
  CudaDevice& gpu = **opened;
  BufferPool weight_memory;
  auto checkpoint = Checkpoint::open(folder.folder());
  ASSERT_TRUE(checkpoint);
  const auto weights = Weights::load(std::move(checkpoint).value(), DType::kF32, weight_memory);
  ASSERT_TRUE(weights);
  const ModelConfig& config = weights->config();
  const auto graph = build_graph(config, DType::kF32, LogitsOf::kLastPosition);
  ASSERT_TRUE(graph);
  const auto eager = processor.make_eager(*graph, *weights);
  ASSERT_TRUE(eager);
  const auto compiler = GraphCompiler::create(*graph, {}, gpu);
  ASSERT_TRUE(compiler && (*compiler)->load(*weights));
  const auto compiled = (*compiler)->compile(
      {.batch = kBatch, .q_len = 1, .kv_len = std::nullopt, .capacity = kCapacity});
  ASSERT_TRUE(compiled) << compiled.error().message;
  const CacheShape shape{config.layers, kBatch, config.kv_heads, kCapacity, config.head_dim};
  const auto clean = make_static_cache(shape, processor.memory());
  const auto poisoned = make_static_cache(shape, gpu.memory());
  ASSERT_TRUE(clean && poisoned);
  const RopeTables rope = make_rope_tables(config, kCapacity);
  const std::vector<int32_t> pad = {0, 0};
  Random random(1);
  size_t free = 0;
  for (int64_t step = 0; step < kSteps; ++step) {
    if ((*clean)->length() == kCapacity) {
      (*clean)->reset();
      (*poisoned)->reset();
    }
    if (step == kSettled) free = free_bytes(gpu.driver());
    const int64_t position = (*clean)->length();
    std::vector<int32_t> ids;
    for (int64_t row = 0; row < kBatch; ++row) {
      ids.push_back(static_cast<int32_t>(random.below(static_cast<uint64_t>(config.vocab_size))));
    }
    const std::vector<int32_t> lengths(kBatch, static_cast<int32_t>(position));
    const RunInputs inputs{.dims = {kBatch, 1, position + 1},
                           .ids = ids,
                           .lengths = lengths,
                           .pad = pad,
                           .rope = &rope};
    poison_tail(**poisoned, gpu.driver());
    ASSERT_TRUE((*eager)->run(inputs, **clean));
    ASSERT_TRUE((*compiled)->run(inputs, **poisoned));
    expect_near((*compiled)->output_f32(0), (*eager)->output_f32(0), 1e-4);
    ASSERT_FALSE(HasFailure()) << "step " << step;
  }
  EXPECT_EQ(free_bytes(gpu.driver()), free);
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
    options.compile.kernel_cache = kernel_cache();
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
  const auto driver = test::CudaDriver::open();
  if (!driver) GTEST_SKIP() << "no GPU here";
  const TinyCheckpoint checkpoint(families()[1]);
  SessionOptions options{.cache = CacheKind::kStatic, .dtype = DType::kF32, .threads = 2, .gpu = 0};
  options.compile.prefill = options.compile.decode = true;
  options.compile.verify_passes = false;
  options.compile.kernel_cache = kernel_cache();
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
