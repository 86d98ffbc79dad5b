// Walks a graph operator by operator, as a framework dispatches: an output tensor allocated for
// each operator when it runs, freed after its last use, nothing fused, nothing planned.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "engine/cache/kv_cache.h"
#include "engine/device/cpu/packed_weights.h"
#include "engine/device/executor.h"
#include "engine/graph/graph.h"
#include "engine/memory/buffer_pool.h"
#include "engine/model/weights.h"
#include "engine/ops/cpu/block_linear.h"
#include "engine/ops/ops.h"

namespace assay::engine {

class EagerExecutor final : public Executor {
 public:
  // The maker of products with weights in blocks, and their packed copies. Null: `ops` makes them,
  // in place.
  struct BlockProducts {
    cpu::BlockLinear* linear = nullptr;
    PackedWeights* weights = nullptr;
  };

  // The graph must be valid; its weights are looked up here. `ops`, `memory` and what `blocks` has
  // must outlive the executor.
  EagerExecutor(Graph graph, const Weights& weights, OpLibrary& ops, BufferPool& memory,
                BlockProducts blocks);

  // Packs the weights in blocks of its products, and pages in all.
  Status make_ready() override;
  Status run(const RunInputs& inputs, KvCache& cache) override;
  std::span<const float> output_f32(size_t index) const override;
  std::span<const int32_t> output_i32(size_t index) const override;

  const Graph& graph() const { return graph_; }

 private:
  // A value's memory during a run: weights and inputs elsewhere, computed values in a buffer of
  // their own, views at their base's address, caches in a view.
  struct Slot {
    const std::byte* data = nullptr;
    Buffer buffer;
    KvView cache;
  };

  void plan_lifetimes();
  void bind_inputs(const RunInputs& inputs);
  Status allocate_outputs(const Node& node, const DimValues& dims);
  Status execute(const Node& node, const RunInputs& inputs, KvCache& cache);
  Status linear(const Node& node, const DimValues& dims);
  void split(const Node& node, const DimValues& dims);

  const float* f32(ValueId id) const { return reinterpret_cast<const float*>(slots_[id].data); }
  float* out_f32(const Node& node, size_t i = 0) { return slots_[node.outputs[i]].buffer.f32(); }
  std::span<const int32_t> i32(ValueId id, const DimValues& dims) const;
  int64_t count(ValueId id, const DimValues& dims) const;  // elements
  int64_t last_dim(ValueId id, const DimValues& dims) const;
  int64_t dim(ValueId id, size_t axis, const DimValues& dims) const;

  Graph graph_;
  const Weights& loaded_;
  OpLibrary& ops_;
  BufferPool& memory_;
  BlockProducts blocks_;
  bool is_ready_ = false;
  std::map<ValueId, cpu::BlockWeight> packed_;  // of products, once it is ready
  std::vector<Slot> slots_;                     // by value
  std::vector<TensorView> weights_;             // by value; empty if it isn't a weight
  std::vector<std::vector<ValueId>> frees_;     // by node: values whose memory no later node reads
  DimValues last_dims_;
};

}  // namespace assay::engine
