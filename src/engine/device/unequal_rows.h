// For tests of every device: a row of a batch whose rows have different lengths in the cache gets
// the same as alone.
#pragma once

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <vector>

#include "engine/compiled/graph_compiler.h"
#include "engine/device/cpu/cpu_device.h"
#include "engine/graph/architectures.h"
#include "engine/session/tiny_checkpoint.h"

namespace assay::engine::test {

// Rows that have 5, 17 and 1 positions in the cache, two of the first's padding, get ten tokens in
// one run and decode from there on.
class UnequalRows {
 public:
  explicit UnequalRows(const Family& family) : folder_(family) {
    auto checkpoint = Checkpoint::open(folder_.folder());
    EXPECT_TRUE(checkpoint);
    auto loaded = Weights::load(std::move(checkpoint).value(), DType::kF32, weight_memory_);
    EXPECT_TRUE(loaded);
    weights_ = std::make_unique<Weights>(*std::move(loaded));
    auto graph = build_graph(weights_->config(), DType::kF32, LogitsOf::kLastPosition);
    EXPECT_TRUE(graph);
    graph_ = *std::move(graph);
    auto named = build_graph(weights_->config(), DType::kF32, LogitsOf::kLastPosition, DType::kF32,
                             Fp8::kNone, CacheRows::kNamed);
    EXPECT_TRUE(named);
    named_graph_ = *std::move(named);
    rope_ = make_rope_tables(weights_->config(), kCapacity);
    CpuDevice device({.threads = 1});
    const auto eager = device.make_eager(graph_, *weights_);
    EXPECT_TRUE(eager);
    for (size_t row = 0; row < kRows; ++row) {
      const auto cache = make_static_cache(shape(1), device.memory());
      Batch batch({kPasts[row]}, {kPads[row]});
      run_past(**eager, **cache, row);
      expected_.push_back(generate(**eager, **eager, **cache, batch, {chunk(row)}).front());
    }
  }

  // Runs on the device, eager or compiled, with sizes as symbols or the decode steps specialised.
  // Named rows are of a static cache that has more of them.
  void run(Device& device, bool compiled, CacheKind kind, bool specialised,
           CacheRows cache_rows = CacheRows::kInOrder) {
    const bool named = cache_rows == CacheRows::kNamed;
    slots_ = named ? kSlots : std::vector<int32_t>{0, 1, 2};
    const Graph& graph = named ? named_graph_ : graph_;
    const auto eager = device.make_eager(graph, *weights_);
    ASSERT_TRUE(eager) << eager.error().message;
    std::shared_ptr<LoadedStep> prompt, step;
    if (compiled) {
      CompilerOptions options;
      options.verify_passes = false;
      const auto compiler = GraphCompiler::create(graph, options, device);
      ASSERT_TRUE(compiler && (*compiler)->load(*weights_));
      Specialization dims;
      if (specialised) dims = {kRows, 1, std::nullopt, kCapacity};
      for (auto& [made, of] : {std::pair(&prompt, Specialization()), std::pair(&step, dims)}) {
        auto loaded = (*compiler)->compile(of);
        ASSERT_TRUE(loaded) << loaded.error().message;
        *made = *std::move(loaded);
      }
    }
    const auto cache = make_cache(kind, named ? kCacheRows : kRows, device.memory());
    fill(device, *cache);
    Batch batch(kPasts, kPads);
    std::vector<Prompt> chunks;
    for (size_t row = 0; row < kRows; ++row) chunks.push_back(chunk(row));
    const auto found =
        generate(compiled ? *prompt : **eager, compiled ? *step : **eager, *cache, batch, chunks);
    for (size_t row = 0; row < kRows; ++row) {
      SCOPED_TRACE(testing::Message() << "row of " << kPasts[row]);
      EXPECT_EQ(found[row].tokens, expected_[row].tokens);
      ASSERT_EQ(found[row].logits.size(), expected_[row].logits.size());
      for (size_t i = 0; i < found[row].logits.size(); ++i) {
        expect_near(found[row].logits[i], expected_[row].logits[i], 1e-4);
      }
    }
    if (step && step->feeds_itself()) decode_alone(*step, *cache, batch, found);
    if (named && device.info().kind == "cpu") expect_untouched(*cache);
  }

 private:
  static constexpr size_t kRows = 3, kCacheRows = 5;
  inline static const std::vector<int32_t> kSlots = {4, 0, 2};
  static constexpr int64_t kChunk = 10, kSteps = 6, kMore = 20, kCapacity = 64;
  inline static const std::vector<int32_t> kPasts = {5, 17, 1}, kPads = {2, 0, 0};

  struct Row {
    std::vector<int32_t> tokens;
    std::vector<std::vector<float>> logits;
  };
  // Lengths and padding of a batch's rows in the cache.
  struct Batch {
    Batch(std::vector<int32_t> lengths, std::vector<int32_t> pads)
        : length(std::move(lengths)), pad(std::move(pads)) {}
    std::vector<int32_t> length, pad;
  };

  CacheShape shape(int64_t rows) const {
    const ModelConfig& c = weights_->config();
    return {c.layers, rows, c.kv_heads, kCapacity, c.head_dim};
  }
  std::unique_ptr<KvCache> make_cache(CacheKind kind, size_t rows, BufferPool& memory) const {
    const CacheShape wanted = shape(static_cast<int64_t>(rows));
    if (kind == CacheKind::kDynamic) return make_dynamic_cache(wanted, memory);
    return make_static_cache(wanted, memory).value();
  }
  // The rows that no slot names hold what fill() has put there.
  void expect_untouched(KvCache& cache) const {
    for (const CachePart part : {CachePart::kKeys, CachePart::kValues}) {
      const auto view = cache.extend(0, part, cache.length());
      ASSERT_TRUE(view);
      for (const int64_t row : {1, 3}) {
        const float* first = view->f32() + row * view->batch_stride;
        EXPECT_TRUE(std::all_of(first, first + view->batch_stride,
                                [](float value) { return std::isnan(value); }));
      }
    }
  }

  // Token i of a row's text.
  static int32_t token(size_t row, int64_t i) {
    return static_cast<int32_t>((i * 7 + static_cast<int64_t>(row) * 5 + 3) % 37);
  }
  static Prompt chunk(size_t row) {
    Prompt ids;
    for (int64_t i = 0; i < kChunk; ++i) ids.push_back(token(row, kPasts[row] + i));
    return ids;
  }

  void run_past(Executor& executor, KvCache& cache, size_t row) const {
    Prompt ids;
    for (int64_t i = 0; i < kPasts[row]; ++i) ids.push_back(token(row, i));
    const int32_t none = 0;
    ASSERT_TRUE(executor.run({.dims = {1, kPasts[row], kPasts[row]},
                              .ids = ids,
                              .lengths = {&none, 1},
                              .pad = {&kPads[row], 1},
                              .rope = &rope_},
                             cache));
  }

  // Each row's past, from a run of its own, into the batch's cache; poison behind it.
  void fill(Device& device, KvCache& cache) const {
    const int64_t longest = std::ranges::max(kPasts);
    const auto eager = device.make_eager(graph_, *weights_);
    ASSERT_TRUE(eager);
    std::vector<std::unique_ptr<KvCache>> alone;
    for (size_t row = 0; row < kRows; ++row) {
      alone.push_back(make_static_cache(shape(1), device.memory()).value());
      run_past(**eager, *alone.back(), row);
    }
    for (int64_t layer = 0; layer < shape(1).layers; ++layer) {
      for (const CachePart part : {CachePart::kKeys, CachePart::kValues}) {
        const auto to = cache.extend(layer, part, longest);
        ASSERT_TRUE(to);
        if (device.info().kind == "cpu") {
          std::fill_n(to->f32(), to->batch * to->batch_stride,
                      std::numeric_limits<float>::quiet_NaN());
        }
        for (size_t row = 0; row < kRows; ++row) {
          const auto from = alone[row]->extend(layer, part, 0);
          ASSERT_TRUE(from);
          const auto bytes = [&](int64_t elements) {
            return static_cast<size_t>(elements) * dtype_size_bytes(to->dtype);
          };
          std::byte* first =
              static_cast<std::byte*>(to->data) + bytes(slots_[row] * to->batch_stride);
          ASSERT_TRUE(
              device.memory().space().copy({.to = first,
                                            .to_pitch = bytes(to->head_stride),
                                            .from = static_cast<const std::byte*>(from->data),
                                            .from_pitch = bytes(from->head_stride),
                                            .row_bytes = bytes(kPasts[row] * to->head_dim),
                                            .rows = static_cast<size_t>(to->kv_heads)}));
        }
      }
    }
    cache.commit(longest);
  }

  RunInputs inputs(const Batch& batch, const KvCache& cache, const Prompt& ids,
                   int64_t q_len) const {
    return {.dims = {std::ssize(batch.length), q_len, cache.length() + q_len},
            .ids = ids,
            .lengths = batch.length,
            .pad = batch.pad,
            .slots = slots_,
            .rope = &rope_};
  }

  // The chunks in one run of `prompt`, then greedy steps; by row.
  std::vector<Row> generate(Executor& prompt, Executor& step, KvCache& cache, Batch& batch,
                            const std::vector<Prompt>& chunks) const {
    std::vector<Row> rows(chunks.size());
    Prompt ids;
    for (const Prompt& of_row : chunks) ids.insert(ids.end(), of_row.begin(), of_row.end());
    for (int64_t i = 0; i <= kSteps; ++i) {
      Executor& executor = i == 0 ? prompt : step;
      const int64_t q_len = i == 0 ? kChunk : 1;
      const auto ran = executor.run(inputs(batch, cache, ids, q_len), cache);
      EXPECT_TRUE(ran) << ran.error().message;
      if (!ran) return rows;
      for (int32_t& length : batch.length) length += static_cast<int32_t>(q_len);
      const auto next = executor.output_i32(1);
      ids.assign(next.begin(), next.end());
      const auto logits = executor.output_f32(0);
      const size_t vocab = logits.size() / rows.size();
      for (size_t row = 0; row < rows.size(); ++row) {
        rows[row].tokens.push_back(next[row]);
        const auto own = logits.subspan(row * vocab, vocab);
        rows[row].logits.emplace_back(own.begin(), own.end());
      }
    }
    return rows;
  }

  // Further steps without the host in between give the same as one by one.
  void decode_alone(LoadedStep& step, KvCache& cache, Batch& batch, const std::vector<Row>& rows) {
    Prompt first;
    for (const Row& row : rows) first.push_back(row.tokens.back());
    std::vector<int32_t> expected, found;
    Prompt ids = first;
    Batch one_by_one = batch;
    const int64_t length = cache.length();
    for (int64_t i = 0; i < kMore; ++i) {
      ASSERT_TRUE(step.run(inputs(one_by_one, cache, ids, 1), cache));
      for (int32_t& of_row : one_by_one.length) ++of_row;
      const auto next = step.output_i32(1);
      ids.assign(next.begin(), next.end());
      expected.insert(expected.end(), next.begin(), next.end());
    }
    cache.reset();
    cache.commit(length);
    ASSERT_TRUE(step.run_greedy(inputs(batch, cache, first, 1), kMore, kMore, cache,
                                [&](std::span<const int32_t> next, bool) {
                                  found.insert(found.end(), next.begin(), next.end());
                                  return Onward::kGo;
                                }));
    EXPECT_EQ(found, expected);
  }

  TinyCheckpoint folder_;
  BufferPool weight_memory_;
  std::unique_ptr<Weights> weights_;
  Graph graph_, named_graph_;
  std::vector<int32_t> slots_;  // of the run at hand
  RopeTables rope_;
  std::vector<Row> expected_;
};

}  // namespace assay::engine::test
