// Ten thousand compiled decode steps over a static cache whose unused positions hold NaN: every
// step gives what the eager executor gives over a clean one, and memory stays as it was.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "base/random.h"
#include "engine/compiled/graph_compiler.h"
#include "engine/device/cpu/cpu_device.h"
#include "engine/graph/architectures.h"
#include "engine/session/tiny_checkpoint.h"

namespace assay::engine {
namespace {

constexpr int64_t kSteps = 10'000;
constexpr int64_t kSettled = 1'000;  // steps after which nothing may grow
constexpr int64_t kBatch = 2;
constexpr int64_t kCapacity = 32;

int64_t resident_pages() {
  std::ifstream statm("/proc/self/statm");
  int64_t total = 0, resident = 0;
  statm >> total >> resident;
  return resident;
}

// What lies behind the positions in use must not matter.
void poison_tail(KvCache& cache) {
  for (int64_t layer = 0; layer < cache.shape().layers; ++layer) {
    for (const CachePart part : {CachePart::kKeys, CachePart::kValues}) {
      const auto view = cache.extend(layer, part, 1);
      ASSERT_TRUE(view);
      for (int64_t head = 0; head < view->batch * view->kv_heads; ++head) {
        float* positions = view->f32() + head * view->head_stride;
        std::fill(positions + cache.length() * view->head_dim,
                  positions + view->capacity * view->head_dim,
                  std::numeric_limits<float>::quiet_NaN());
      }
    }
  }
}

class CompiledSoak : public ::testing::TestWithParam<size_t> {};

TEST_P(CompiledSoak, PoisonedTailsChangeNothingAndNothingGrows) {
  const TinyCheckpoint folder(families()[GetParam()]);
  CpuDevice device({.threads = 2});
  BufferPool weight_memory;
  BufferPool& memory = device.memory();
  auto checkpoint = Checkpoint::open(folder.folder());
  ASSERT_TRUE(checkpoint);
  const auto weights = Weights::load(std::move(checkpoint).value(), DType::kF32, weight_memory);
  ASSERT_TRUE(weights);
  const ModelConfig& config = weights->config();
  const auto graph = build_graph(config, DType::kF32, LogitsOf::kLastPosition);
  ASSERT_TRUE(graph);
  const auto eager = device.make_eager(*graph, *weights);
  ASSERT_TRUE(eager);
  const auto compiler = GraphCompiler::create(*graph, {}, device);
  ASSERT_TRUE(compiler && (*compiler)->load(*weights));
  const auto compiled = (*compiler)->compile(
      {.batch = kBatch, .q_len = 1, .kv_len = std::nullopt, .capacity = kCapacity});
  ASSERT_TRUE(compiled) << compiled.error().message;
  const CacheShape shape{config.layers, kBatch, config.kv_heads, kCapacity, config.head_dim};
  const auto clean = make_static_cache(shape, memory);
  const auto poisoned = make_static_cache(shape, memory);
  ASSERT_TRUE(clean && poisoned);
  const RopeTables rope = make_rope_tables(config, kCapacity);
  const std::vector<int32_t> pad = {0, 0};
  Random random(1);
  uint64_t allocations = 0;
  int64_t pages = 0;
  for (int64_t step = 0; step < kSteps; ++step) {
    if ((*clean)->length() == kCapacity) {
      (*clean)->reset();
      (*poisoned)->reset();
    }
    if (step == kSettled) {
      allocations = memory.system_allocations();
      pages = resident_pages();
    }
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
    poison_tail(**poisoned);
    ASSERT_TRUE((*eager)->run(inputs, **clean));
    ASSERT_TRUE((*compiled)->run(inputs, **poisoned));
    const auto expected = (*eager)->output_f32(0);
    const auto found = (*compiled)->output_f32(0);
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) {
      ASSERT_NEAR(found[i], expected[i], 1e-3) << "step " << step << ", logit " << i;
    }
  }
  EXPECT_EQ(memory.system_allocations(), allocations);
  EXPECT_LE(resident_pages(), pages + 64);
}

INSTANTIATE_TEST_SUITE_P(Families, CompiledSoak, ::testing::Range(size_t{0}, families().size()),
                         [](const auto& family) { return families()[family.param].name; });

}  // namespace
}  // namespace assay::engine
