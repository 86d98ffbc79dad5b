// For tests of every device: compiled steps over a cache whose unused positions hold NaN give the
// same as eager ones over a clean one, and memory stays as it was.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <vector>

#include "base/random.h"
#include "engine/compiled/graph_compiler.h"
#include "engine/graph/architectures.h"
#include "engine/session/tiny_checkpoint.h"

namespace assay::engine::test {

constexpr unsigned char kNanBytes = 0xff;  // of any floating-point type

// Access to a device's memory that Device doesn't give.
struct TrialMemory {
  // Fills it with kNanBytes, in the order of the device's other work.
  std::function<Status(std::byte* to, size_t bytes)> poison;
  // Bytes, of the device or of the process; after a tenth of a trial they may grow by so many.
  std::function<int64_t()> in_use;
  int64_t growth_bytes = 0;
};

// Decode steps of a batch of two, as long as the caches have room, then from their start again:
// compiled on one device, eager on another, which may be the same. Both must outlive it.
class PoisonedTails {
 public:
  PoisonedTails(const Family& family, Device& compiled, Device& eager)
      : folder_(family), device_(compiled) {
    auto checkpoint = Checkpoint::open(folder_.folder());
    EXPECT_TRUE(checkpoint);
    auto weights = Weights::load(std::move(checkpoint).value(), DType::kF32, weight_memory_);
    EXPECT_TRUE(weights);
    weights_ = std::make_unique<Weights>(std::move(weights).value());
    const ModelConfig& config = weights_->config();
    rope_ = make_rope_tables(config, kCapacity);
    const auto graph = build_graph(config, DType::kF32, LogitsOf::kLastPosition);
    EXPECT_TRUE(graph);
    eager_ = eager.make_eager(*graph, *weights_).value();
    const auto compiler = GraphCompiler::create(*graph, {}, compiled);
    EXPECT_TRUE(compiler && (*compiler)->load(*weights_));
    auto step = (*compiler)->compile(
        {.batch = kBatch, .q_len = 1, .kv_len = std::nullopt, .capacity = kCapacity});
    EXPECT_TRUE(step) << step.error().message;
    compiled_ = std::move(step).value();
    const CacheShape shape{config.layers, kBatch, config.kv_heads, kCapacity, config.head_dim};
    clean_ = make_static_cache(shape, eager.memory()).value();
    poisoned_ = make_static_cache(shape, compiled.memory()).value();
  }

  void run(int64_t steps, const TrialMemory& memory) {
    uint64_t allocations = 0;
    int64_t bytes = 0;
    for (int64_t step = 0; step < steps; ++step) {
      if (step == steps / 10) {
        allocations = device_.memory().system_allocations();
        bytes = memory.in_use();
      }
      if (clean_->length() == kCapacity) {
        clean_->reset();
        poisoned_->reset();
      }
      poison_tail(memory);
      run_step();
      ASSERT_FALSE(testing::Test::HasFailure()) << "step " << step;
    }
    EXPECT_EQ(device_.memory().system_allocations(), allocations);
    EXPECT_LE(memory.in_use(), bytes + memory.growth_bytes);
  }

 private:
  static constexpr int64_t kBatch = 2, kCapacity = 32;

  // Fills the positions behind those in use, which must not matter.
  void poison_tail(const TrialMemory& memory) {
    for (int64_t layer = 0; layer < poisoned_->shape().layers; ++layer) {
      for (const CachePart part : {CachePart::kKeys, CachePart::kValues}) {
        const auto view = poisoned_->extend(layer, part, poisoned_->length() + 1);
        ASSERT_TRUE(view);
        const int64_t used = poisoned_->length() * view->head_dim;
        const int64_t unused = view->capacity * view->head_dim - used;
        for (int64_t head = 0; head < view->batch * view->kv_heads; ++head) {
          float* tail = view->f32() + head * view->head_stride + used;
          ASSERT_TRUE(memory.poison(reinterpret_cast<std::byte*>(tail),
                                    static_cast<size_t>(unused) * sizeof(float)));
        }
      }
    }
  }

  void run_step() {
    const int64_t position = clean_->length();
    const auto vocab = static_cast<uint64_t>(weights_->config().vocab_size);
    std::vector<int32_t> ids;
    for (int64_t row = 0; row < kBatch; ++row) {
      ids.push_back(static_cast<int32_t>(random_.below(vocab)));
    }
    const std::vector<int32_t> lengths(kBatch, static_cast<int32_t>(position)), pad(kBatch, 0);
    const RunInputs inputs{.dims = {kBatch, 1, position + 1},
                           .ids = ids,
                           .lengths = lengths,
                           .pad = pad,
                           .rope = &rope_};
    ASSERT_TRUE(eager_->run(inputs, *clean_));
    ASSERT_TRUE(compiled_->run(inputs, *poisoned_));
    expect_near(compiled_->output_f32(0), eager_->output_f32(0), 1e-4);
  }

  TinyCheckpoint folder_;
  Device& device_;
  BufferPool weight_memory_;
  std::unique_ptr<Weights> weights_;
  RopeTables rope_;
  std::unique_ptr<Executor> eager_;
  std::shared_ptr<LoadedStep> compiled_;
  std::unique_ptr<KvCache> clean_, poisoned_;
  Random random_{1};
};

}  // namespace assay::engine::test
