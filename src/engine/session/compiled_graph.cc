// From a graph to a schedule: lowering, loading, and where each kernel's buffers are.
#include "engine/session/compiled_graph.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "engine/codegen/lower.h"
#include "engine/passes/plan_memory.h"
#include "engine/session/cache_values.h"
#include "engine/session/product_nodes.h"

namespace assay::engine {
namespace {

constexpr size_t kAlignment = 64;

size_t aligned(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

Dim rows_of(const Kernel& kernel) {
  if (const auto* rows = std::get_if<RowsKernel>(&kernel.body)) return rows->rows;
  if (const auto* product = std::get_if<ProductKernel>(&kernel.body)) return product->rows;
  return Dim::batch() * Dim::q_len();
}

// The stage of a kernel, its weights bound; everything else is null.
Result<Stage> make_stage(const Graph& graph, const Node& node, const Kernel& kernel,
                         const KernelFunctions& functions, PackedWeights& weights) {
  Stage stage{.functions = functions, .buffers = {}, .rows = rows_of(kernel), .product = {}};
  stage.buffers.resize(kernel.buffers.size(), nullptr);
  const auto* product = std::get_if<ProductKernel>(&kernel.body);
  for (size_t i = 0; i < kernel.bound_buffers; ++i) {
    const Value& value = graph.values[kernel.buffers[i].value];
    const auto* weight = std::get_if<WeightSource>(&value.source);
    if (weight == nullptr) continue;
    const std::byte* data = nullptr;
    if (product != nullptr && product->weight == i) {
      ASSAY_TRY(data, weights.panels(*weight, product_of(node)->layout, product->packing));
      stage.product = ProductStage{.inputs = product->inputs,
                                   .packing = product->packing,
                                   .panels = data,
                                   .dtype = value.type.dtype,
                                   .x = product->x};
    } else {
      ASSAY_TRY(data, weights.plain(*weight));
    }
    stage.buffers[i] = const_cast<std::byte*>(data);  // kernels don't write to weights
  }
  return stage;
}

}  // namespace

Result<std::unique_ptr<CompiledGraph>> CompiledGraph::build(std::shared_ptr<const Graph> graph,
                                                            const Specialization& dims,
                                                            KernelLibrary& library,
                                                            PackedWeights& weights,
                                                            ThreadPool& pool, bool share_memory) {
  std::vector<Kernel> kernels;
  std::vector<const Node*> nodes;
  for (const Node& node : graph->nodes) {
    if (node.op == OpKind::kView) continue;
    ASSAY_TRY(Kernel kernel, lower(*graph, node, dims));
    kernels.push_back(std::move(kernel));
    nodes.push_back(&node);
  }
  ASSAY_TRY(const std::vector<KernelFunctions> functions, library.load(kernels));
  std::vector<Stage> stages;
  for (size_t i = 0; i < kernels.size(); ++i) {
    ASSAY_TRY(Stage stage, make_stage(*graph, *nodes[i], kernels[i], functions[i], weights));
    stages.push_back(std::move(stage));
  }
  return std::unique_ptr<CompiledGraph>(new CompiledGraph(std::move(graph), std::move(kernels),
                                                          std::move(stages), pool, share_memory));
}

CompiledGraph::CompiledGraph(std::shared_ptr<const Graph> graph, std::vector<Kernel> kernels,
                             std::vector<Stage> stages, ThreadPool& pool, bool share_memory)
    : graph_(std::move(graph)),
      kernels_(std::move(kernels)),
      share_memory_(share_memory),
      schedule_(std::move(stages), pool) {
  find_bases();
  bind_slots();
}

void CompiledGraph::find_bases() {
  base_.resize(graph_->values.size());
  for (ValueId id = 0; id < base_.size(); ++id) base_[id] = id;
  for (const Node& node : graph_->nodes) {
    if (node.op == OpKind::kView) base_[node.outputs[0]] = base_[node.inputs[0]];
  }
}

// The stages' vectors keep their addresses from here on.
void CompiledGraph::bind_slots() {
  const auto caches = cache_values(*graph_);
  size_t views = 0;
  for (size_t i = 0; i < kernels_.size(); ++i) {
    for (size_t b = 0; b < kernels_[i].bound_buffers; ++b) {
      const ValueId id = base_[kernels_[i].buffers[b].value];
      void** slot = &schedule_.stages()[i].buffers[b];
      if (caches[id]) {
        const size_t view =
            static_cast<size_t>(caches[id]->layer) * 2 + (caches[id]->part == CachePart::kValues);
        cache_slots_.push_back({slot, view});
        views = std::max(views, view + 1);
      } else if (const auto* rope = std::get_if<ConstantSource>(&graph_->values[id].source)) {
        rope_slots_.push_back({slot, rope->kind});
      }
    }
  }
  views_.resize((views + 1) / 2 * 2);
}

int64_t CompiledGraph::count(ValueId id, const DimValues& dims) const {
  return elements(graph_->values[id].type.shape).value(dims);
}

Status CompiledGraph::reserve(const DimValues& dims) {
  if (reserved_ && reserved_->batch == dims.batch && reserved_->q_len == dims.q_len &&
      reserved_->kv_len >= dims.kv_len) {
    return {};
  }
  reserved_.reset();
  const DimValues most{std::max(dims.batch, placed_.batch), std::max(dims.q_len, placed_.q_len),
                       std::max(dims.kv_len, placed_.kv_len)};
  if (most.batch > placed_.batch || most.q_len > placed_.q_len || most.kv_len > placed_.kv_len) {
    placed_ = {};
    ASSAY_CHECK(place_values(most));
    bind_values();
    placed_ = most;
  }
  StageMemory memory;
  const auto threads = static_cast<int64_t>(schedule_.threads());
  for (const Kernel& kernel : kernels_) {
    memory.scratch_floats =
        std::max(memory.scratch_floats, kernel_scratch_floats(kernel, dims, threads));
    memory.shared_floats.push_back(kernel_shared_floats(kernel, dims, threads));
  }
  ASSAY_CHECK(schedule_.reserve(memory, dims));
  reserved_ = dims;
  return {};
}

// One arena: the inputs, then what the graph computes, as planned.
Status CompiledGraph::place_values(const DimValues& dims) {
  const MemoryPlan plan = plan_memory(*graph_, dims, share_memory_);
  std::vector<std::optional<size_t>> offsets(graph_->values.size());
  size_t total = aligned(static_cast<size_t>(plan.arena_bytes));
  for (ValueId id = 0; id < offsets.size(); ++id) {
    if (std::holds_alternative<InputSource>(graph_->values[id].source)) {
      offsets[id] = total;
      total += aligned(static_cast<size_t>(count(id, dims)) * sizeof(int32_t));
    } else if (plan.offsets[id]) {
      offsets[id] = static_cast<size_t>(*plan.offsets[id]);
    }
  }
  ASSAY_TRY(arena_, HugeMemory::allocate(total));
  std::memset(arena_.data(), 0, total);  // touched here, not in the first step
  addresses_.assign(offsets.size(), nullptr);
  for (ValueId id = 0; id < offsets.size(); ++id) {
    if (offsets[id]) addresses_[id] = arena_.data() + *offsets[id];
  }
  return {};
}

void CompiledGraph::bind_values() {
  for (size_t i = 0; i < kernels_.size(); ++i) {
    for (size_t b = 0; b < kernels_[i].bound_buffers; ++b) {
      std::byte* address = addresses_[base_[kernels_[i].buffers[b].value]];
      if (address != nullptr) schedule_.stages()[i].buffers[b] = address;
    }
  }
}

// Inputs are copied to where the kernels read them; caches are where they are now.
Status CompiledGraph::bind_inputs(const RunInputs& inputs, KvCache& cache) {
  for (ValueId id = 0; id < addresses_.size(); ++id) {
    const auto* input = std::get_if<InputSource>(&graph_->values[id].source);
    if (input == nullptr) continue;
    const std::span<const int32_t> from = input->kind == InputKind::kIds         ? inputs.ids
                                          : input->kind == InputKind::kPositions ? inputs.positions
                                                                                 : inputs.pad;
    std::memcpy(addresses_[id], from.data(), from.size_bytes());
  }
  for (const RopeSlot& rope : rope_slots_) {
    const auto& table = rope.kind == ConstantKind::kRopeCos ? inputs.rope->cos : inputs.rope->sin;
    *rope.slot = const_cast<float*>(table.data());  // kernels don't write to it
  }
  for (size_t i = 0; i < views_.size(); ++i) {
    const CachePart part = i % 2 == 0 ? CachePart::kKeys : CachePart::kValues;
    ASSAY_TRY(views_[i], cache.extend(static_cast<int64_t>(i / 2), part, inputs.dims.q_len));
  }
  for (const CacheSlot& slot : cache_slots_) *slot.slot = views_[slot.view].data;
  return {};
}

Status CompiledGraph::run(const RunInputs& inputs, KvCache& cache) {
  assert(inputs.dims.kv_len == cache.length() + inputs.dims.q_len);
  DimValues most = inputs.dims;
  most.kv_len = std::max(most.kv_len, cache.shape().capacity);
  ASSAY_CHECK(reserve(most));
  ASSAY_CHECK(bind_inputs(inputs, cache));
  schedule_.run(inputs.dims, views_.empty() ? 0 : views_[0].capacity);
  cache.commit(inputs.dims.q_len);
  last_dims_ = inputs.dims;
  return {};
}

std::span<const float> CompiledGraph::output_f32(size_t index) const {
  return {reinterpret_cast<const float*>(output(index)),
          static_cast<size_t>(count(graph_->outputs[index], last_dims_))};
}

std::span<const int32_t> CompiledGraph::output_i32(size_t index) const {
  return {reinterpret_cast<const int32_t*>(output(index)),
          static_cast<size_t>(count(graph_->outputs[index], last_dims_))};
}

}  // namespace assay::engine
