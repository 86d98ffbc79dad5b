// A fused node has its product in its body, whose weight is a parameter.
#include "engine/session/product_nodes.h"

#include <algorithm>

namespace assay::engine {

std::optional<ProductNode> product_of(const Node& node) {
  if (const auto* linear = std::get_if<LinearAttributes>(&node.attributes)) {
    return ProductNode{node.inputs[1], linear->layout};
  }
  const auto* fused = std::get_if<FusedAttributes>(&node.attributes);
  if (fused == nullptr) return std::nullopt;
  const Graph& body = *fused->body;
  const auto linear = std::ranges::find(body.nodes, OpKind::kLinear, &Node::op);
  if (linear == body.nodes.end()) return std::nullopt;
  const auto& weight = std::get<ParameterSource>(body.values[linear->inputs[1]].source);
  return ProductNode{node.inputs[weight.index],
                     std::get<LinearAttributes>(linear->attributes).layout};
}

}  // namespace assay::engine
