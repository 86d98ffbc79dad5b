// A written cache is the output of a kv_write; in a fused node, of the body's.
#include "engine/session/cache_values.h"

#include <algorithm>

namespace assay::engine {
namespace {

// The parameter whose cache a body's value is; absent: it is none.
std::optional<size_t> written_parameter(const Graph& body, ValueId value) {
  for (const Node& node : body.nodes) {
    if (node.op != OpKind::kKvWrite || node.outputs[0] != value) continue;
    return std::get<ParameterSource>(body.values[node.inputs[0]].source).index;
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::optional<CacheSource>> cache_values(const Graph& graph) {
  std::vector<std::optional<CacheSource>> caches(graph.values.size());
  for (ValueId id = 0; id < graph.values.size(); ++id) {
    if (const auto* cache = std::get_if<CacheSource>(&graph.values[id].source)) caches[id] = *cache;
  }
  for (const Node& node : graph.nodes) {
    if (node.op == OpKind::kKvWrite) caches[node.outputs[0]] = caches[node.inputs[0]];
    if (node.op != OpKind::kFused) continue;
    const Graph& body = *std::get<FusedAttributes>(node.attributes).body;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const auto parameter = written_parameter(body, body.outputs[i]);
      if (parameter) caches[node.outputs[i]] = caches[node.inputs[*parameter]];
    }
  }
  return caches;
}

}  // namespace assay::engine
