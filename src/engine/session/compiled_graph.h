// A graph as machine code: one specialisation of a frame, its kernels loaded, its weights packed,
// its values at fixed addresses, its step one schedule on the pool.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/thread_pool.h"
#include "engine/codegen/kernel.h"
#include "engine/codegen/kernel_library.h"
#include "engine/device/huge_memory.h"
#include "engine/graph/graph.h"
#include "engine/session/executor.h"
#include "engine/session/packed_weights.h"
#include "engine/session/schedule.h"

namespace assay::engine {

class CompiledGraph final : public Executor {
 public:
  // Lowers and compiles every node of a graph that the passes have seen. An environment_error has
  // the compiler's whole text; bad_input names what can't be lowered. All but `dims` must outlive
  // the result. `share_memory`: values that are never alive together share memory.
  static Result<std::unique_ptr<CompiledGraph>> build(std::shared_ptr<const Graph> graph,
                                                      const Specialization& dims,
                                                      KernelLibrary& library,
                                                      PackedWeights& weights, ThreadPool& pool,
                                                      bool share_memory);

  // Allocates what runs of these sizes need beyond what earlier ones did, touched; runs with the
  // same batch and q_len and up to this kv_len then allocate nothing but what a growing cache does.
  Status reserve(const DimValues& dims);

  // The sizes must be those that the graph is specialised on, where it is: assert.
  Status run(const RunInputs& inputs, KvCache& cache) override;
  std::span<const float> output_f32(size_t index) const override;
  std::span<const int32_t> output_i32(size_t index) const override;

  size_t arena_bytes() const { return arena_.size_bytes(); }

 private:
  // A buffer of a kernel that is bound anew in every run.
  struct CacheSlot {
    void** slot;
    size_t view;  // 2 * layer, + 1 for values
  };
  struct RopeSlot {
    void** slot;
    ConstantKind kind;
  };

  CompiledGraph(std::shared_ptr<const Graph> graph, std::vector<Kernel> kernels,
                std::vector<Stage> stages, ThreadPool& pool, bool share_memory);
  Status place_values(const DimValues& dims);
  void find_bases();
  void bind_slots();
  void bind_values();
  Status bind_inputs(const RunInputs& inputs, KvCache& cache);
  std::byte* output(size_t index) const { return addresses_[base_[graph_->outputs[index]]]; }
  int64_t count(ValueId id, const DimValues& dims) const;

  std::shared_ptr<const Graph> graph_;
  std::vector<Kernel> kernels_;  // one a stage
  bool share_memory_;
  Schedule schedule_;
  std::vector<ValueId> base_;          // by value: whose memory a view shows
  std::vector<std::byte*> addresses_;  // by value: inputs and computed values
  std::vector<CacheSlot> cache_slots_;
  std::vector<RopeSlot> rope_slots_;
  std::vector<KvView> views_;  // of the run at hand
  HugeMemory arena_;
  std::optional<DimValues> reserved_;  // by the latest reserve()
  DimValues placed_;                   // the largest sizes that the arena has room for
  DimValues last_dims_;
};

}  // namespace assay::engine
