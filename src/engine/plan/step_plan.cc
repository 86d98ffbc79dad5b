// Makes a plan of a graph: lowering, and the binding of each kernel's buffers.
#include "engine/plan/step_plan.h"

#include <algorithm>
#include <utility>

#include "engine/codegen/lower/lower.h"
#include "engine/graph/queries.h"
#include "engine/passes/plan_memory.h"

namespace assay::engine {
namespace {

size_t aligned(size_t bytes) {
  return (bytes + ArenaPlan::kAlignment - 1) / ArenaPlan::kAlignment * ArenaPlan::kAlignment;
}

Dim rows_of(const Kernel& kernel) {
  if (const auto* rows = std::get_if<RowsKernel>(&kernel.body)) return rows->rows;
  if (const auto* product = std::get_if<ProductKernel>(&kernel.body)) return product->rows;
  return Dim::batch() * Dim::q_len();
}

void add_inputs(const StepPlan& plan, const DimValues& most, ArenaPlan& arena) {
  for (ValueId id = 0; id < arena.offsets.size(); ++id) {
    const Value& value = plan.graph->values[id];
    const auto* input = std::get_if<InputSource>(&value.source);
    if (input == nullptr) continue;
    arena.offsets[id] = arena.bytes;
    arena.inputs.push_back({input->kind, arena.bytes});
    arena.bytes += aligned(static_cast<size_t>(elements(value.type.shape).value(most)) *
                           dtype_size_bytes(value.type.dtype));
  }
}

class Binder {
 public:
  explicit Binder(StepPlan& plan) : plan_(plan), caches_(cache_values(*plan.graph)) {}

  std::vector<Binding> bindings(const Node& node, const Kernel& kernel) {
    std::vector<Binding> result;
    for (size_t i = 0; i < kernel.bound_buffers; ++i) result.push_back(binding(node, kernel, i));
    return result;
  }

  bool is_steady(const Binding& binding) const {
    const auto* value = std::get_if<ArenaBinding>(&binding);
    if (value == nullptr) return !std::holds_alternative<CacheBinding>(binding);
    return std::holds_alternative<InputSource>(plan_.graph->values[value->value].source);
  }

 private:
  Binding binding(const Node& node, const Kernel& kernel, size_t index) {
    const ValueId id = plan_.bases[kernel.buffers[index].value];
    if (caches_[id]) {
      plan_.layers = std::max(plan_.layers, caches_[id]->layer + 1);
      return CacheBinding{caches_[id]->layer, caches_[id]->part};
    }
    const Source& source = plan_.graph->values[id].source;
    if (const auto* constant = std::get_if<ConstantSource>(&source)) {
      return ConstantBinding{constant->kind};
    }
    if (!std::holds_alternative<WeightSource>(source)) return ArenaBinding{id};
    WeightBinding weight{id, {}};
    const auto* product = std::get_if<ProductKernel>(&kernel.body);
    if (product != nullptr && product->weight == index) {
      weight.product = {product_of(node)->layout, product->packing};
    }
    return weight;
  }

  StepPlan& plan_;
  std::vector<std::optional<CacheSource>> caches_;
};

}  // namespace

Result<StepPlan> make_step_plan(std::shared_ptr<const Graph> graph, const Specialization& dims,
                                bool share_memory, TileLayout layout) {
  StepPlan plan;
  plan.graph = std::move(graph);
  plan.dims = dims;
  plan.bases = view_bases(*plan.graph);
  plan.share_memory = share_memory;
  Binder binder(plan);
  for (const Node& node : plan.graph->nodes) {
    if (node.op == OpKind::kView) continue;
    ASSAY_TRY(Kernel kernel, lower(*plan.graph, node, dims, layout));
    const Dim rows = rows_of(kernel);
    auto bindings = binder.bindings(node, kernel);
    for (size_t i = 0; i < bindings.size(); ++i) {
      kernel.buffers[i].steady = binder.is_steady(bindings[i]);
    }
    plan.kernels.push_back({std::move(kernel), rows, std::move(bindings)});
  }
  return plan;
}

ArenaPlan plan_arena(const StepPlan& plan, const DimValues& most) {
  const MemoryPlan memory = plan_memory(*plan.graph, most, plan.share_memory);
  ArenaPlan arena;
  arena.offsets.resize(plan.graph->values.size());
  arena.bytes = aligned(static_cast<size_t>(memory.arena_bytes));
  for (ValueId id = 0; id < arena.offsets.size(); ++id) {
    if (memory.offsets[id]) arena.offsets[id] = static_cast<size_t>(*memory.offsets[id]);
  }
  add_inputs(plan, most, arena);
  return arena;
}

ArenaPlan plan_inputs(const StepPlan& plan, const DimValues& most) {
  ArenaPlan arena;
  arena.offsets.resize(plan.graph->values.size());
  add_inputs(plan, most, arena);
  return arena;
}

int64_t output_elements(const StepPlan& plan, size_t index, const DimValues& dims) {
  return elements(plan.graph->values[plan.graph->outputs[index]].type.shape).value(dims);
}

}  // namespace assay::engine
