// Each value as the text of one operator over the numbers of its operands.
#include "engine/passes/numbering.h"

#include <utility>

#include "engine/graph/flatten.h"

namespace assay::engine {
namespace {

std::string source_text(Source source) {
  if (auto* weight = std::get_if<WeightSource>(&source)) {
    weight->packing.reset();
    if (weight->tensors.size() < 2) weight->axis = 0;
    return fmt::format("{} axis={} widths=[{}]", to_string(source), weight->axis,
                       fmt::join(weight->widths, ", "));
  }
  return to_string(source);
}

}  // namespace

size_t Numbering::number(const std::string& expression) {
  return numbers_.try_emplace(expression, numbers_.size()).first->second;
}

std::vector<size_t> Numbering::results_of(const Graph& graph) {
  const Graph flat = flatten(graph);
  std::vector<size_t> numbers(flat.values.size());
  for (ValueId id = 0; id < numbers.size(); ++id) {
    const Value& value = flat.values[id];
    if (std::holds_alternative<NodeSource>(value.source)) continue;
    numbers[id] = number(fmt::format("{} : {}", source_text(value.source), to_string(value.type)));
  }
  std::map<std::pair<int64_t, CachePart>, size_t> caches;
  for (const Node& node : flat.nodes) {
    std::string text = fmt::format("{}{}", op_name(node.op), to_string(node.attributes));
    for (const ValueId id : node.inputs) text += fmt::format(" {}", numbers[id]);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const ValueId id = node.outputs[i];
      numbers[id] = number(fmt::format("{} : {} {}", text, i, to_string(flat.values[id].type)));
    }
    if (node.op != OpKind::kKvWrite) continue;
    const auto& cache = std::get<CacheSource>(flat.values[node.inputs[0]].source);
    caches[{cache.layer, cache.part}] = numbers[node.outputs[0]];
  }
  std::vector<size_t> results;
  for (const ValueId id : flat.outputs) results.push_back(numbers[id]);
  for (const auto& [key, cache] : caches) results.push_back(cache);
  return results;
}

}  // namespace assay::engine
