// Lifetimes, then greedy placement by size.
#include "engine/passes/plan_memory.h"

#include <algorithm>

#include "engine/graph/queries.h"

namespace assay::engine {
namespace {

// A value that needs memory, from node `first` to node `last`.
struct Tenant {
  ValueId value = 0;
  int64_t bytes = 0;
  size_t first = 0, last = 0;
  int64_t offset = 0;

  bool meets(const Tenant& other) const { return first <= other.last && other.first <= last; }
};

std::vector<Tenant> tenants_of(const Graph& graph, const std::vector<ValueId>& base,
                               const DimValues& most) {
  std::vector<size_t> last(graph.values.size(), 0);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const ValueId id : graph.nodes[i].inputs) last[base[id]] = i;
  }
  for (const ValueId id : graph.outputs) last[base[id]] = graph.nodes.size();
  std::vector<Tenant> tenants;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (node.op == OpKind::kView) continue;
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      if (written_cache(node, k)) continue;
      const ValueId id = node.outputs[k];
      const TensorType& type = graph.values[id].type;
      const int64_t bytes =
          elements(type.shape).value(most) * static_cast<int64_t>(dtype_size_bytes(type.dtype));
      const int64_t aligned =
          (bytes + MemoryPlan::kAlignment - 1) / MemoryPlan::kAlignment * MemoryPlan::kAlignment;
      tenants.push_back({id, aligned, i, std::max(i, last[id]), 0});
    }
  }
  return tenants;
}

// The lowest offset at which `tenant` meets none of those placed; they are sorted by offset.
int64_t lowest_gap(const Tenant& tenant, const std::vector<Tenant>& placed) {
  int64_t offset = 0;
  for (const Tenant& other : placed) {
    if (!tenant.meets(other)) continue;
    if (offset + tenant.bytes <= other.offset) break;
    offset = std::max(offset, other.offset + other.bytes);
  }
  return offset;
}

}  // namespace

MemoryPlan plan_memory(const Graph& graph, const DimValues& most, bool share) {
  const std::vector<ValueId> base = view_bases(graph);
  std::vector<Tenant> tenants = tenants_of(graph, base, most);
  std::ranges::stable_sort(tenants, std::ranges::greater(), &Tenant::bytes);
  MemoryPlan plan;
  plan.offsets.resize(graph.values.size());
  std::vector<Tenant> placed;
  for (Tenant& tenant : tenants) {
    tenant.offset = share ? lowest_gap(tenant, placed) : plan.unshared_bytes;
    placed.insert(std::ranges::upper_bound(placed, tenant.offset, {}, &Tenant::offset), tenant);
    plan.offsets[tenant.value] = tenant.offset;
    plan.arena_bytes = std::max(plan.arena_bytes, tenant.offset + tenant.bytes);
    plan.unshared_bytes += tenant.bytes;
  }
  for (ValueId id = 0; id < base.size(); ++id) plan.offsets[id] = plan.offsets[base[id]];
  return plan;
}

}  // namespace assay::engine
