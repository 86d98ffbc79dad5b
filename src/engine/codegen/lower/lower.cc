// A plain node is lowered as the body of one operator.
#include "engine/codegen/lower/lower.h"

#include <utility>

#include "engine/codegen/lower/body.h"
#include "engine/codegen/lower/lower_body.h"

namespace assay::engine {
namespace {

Graph body_of(const Graph& graph, const Node& node) {
  if (node.op == OpKind::kFused) return *std::get<FusedAttributes>(node.attributes).body;
  Graph body;
  Node inner{node.op, {}, {}, node.attributes};
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    inner.inputs.push_back(static_cast<ValueId>(body.values.size()));
    body.values.push_back({graph.values[node.inputs[i]].type, ParameterSource{i}});
  }
  for (const ValueId id : node.outputs) {
    inner.outputs.push_back(static_cast<ValueId>(body.values.size()));
    body.values.push_back({graph.values[id].type, NodeSource{}});
  }
  body.outputs = inner.outputs;
  body.nodes.push_back(std::move(inner));
  return body;
}

Kernel attention_kernel(const Graph& graph, const Node& node, const Specialization& dims) {
  const SymbolicShape& q = graph.values[node.inputs[0]].type.shape;
  const SymbolicShape& keys = graph.values[node.inputs[1]].type.shape;
  Kernel kernel;
  kernel.label = "attention";
  kernel.dims = dims;
  static constexpr const char* kNames[] = {"q", "keys", "values", "lengths", "pad", "slots"};
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId value = node.inputs[i];
    kernel.buffers.push_back({kNames[i], graph.values[value].type.dtype, false, value});
  }
  kernel.buffers.push_back({"out", DType::kF32, true, node.outputs[0]});
  kernel.bound_buffers = kernel.buffers.size();
  kernel.body = AttentionKernel{.heads = q[2].factor(),
                                .kv_heads = keys[1].factor(),
                                .head_dim = q[3].factor(),
                                .q = 0,
                                .keys = 1,
                                .values = 2,
                                .lengths = 3,
                                .pad = 4,
                                .out = static_cast<ir::BufferId>(node.inputs.size()),
                                .slots = {}};
  if (node.inputs.size() > 5) std::get<AttentionKernel>(kernel.body).slots = 5;
  return kernel;
}

// The graph's values that a kernel of this node is bound to: all inputs, then the outputs that
// aren't caches.
void bind(const Node& node, const Graph& body, Kernel& kernel) {
  for (size_t i = 0; i < node.inputs.size(); ++i) kernel.buffers[i].value = node.inputs[i];
  size_t next = node.inputs.size();
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (!is_cache_write(body, body.outputs[i])) kernel.buffers[next++].value = node.outputs[i];
  }
}

// Marks the weights that stay in their blocks: in panels the product's alone. Products of those in
// rows are of codes in bf16, which holds them all.
void mark_blocks(const Graph& graph, const Node& node, TileLayout layout, Kernel& kernel) {
  const auto* product = std::get_if<ProductKernel>(&kernel.body);
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Value& value = graph.values[node.inputs[i]];
    const auto* weight = std::get_if<WeightSource>(&value.source);
    const bool multiplied = product != nullptr && product->weight == i;
    if (weight == nullptr || !traits(weight->format).in_blocks() ||
        (layout == TileLayout::kPanels && !multiplied)) {
      continue;
    }
    kernel.buffers[i].blocks = {weight->format, value.type.shape.back().factor(),
                                weight->input_order != nullptr};
    if (multiplied && layout == TileLayout::kRows) kernel.buffers[i].dtype = DType::kBF16;
  }
}

// The weight of the node's product; null if it has none, or a computed one.
const WeightSource* product_weight(const Graph& graph, const Node& node, const Graph& body,
                                   const BodyFacts& facts) {
  if (!facts.linear) return nullptr;
  const ValueId weight = body.nodes[*facts.linear].inputs[1];
  const size_t parameter = std::get<ParameterSource>(body.values[weight].source).index;
  return std::get_if<WeightSource>(&graph.values[node.inputs[parameter]].source);
}

}  // namespace

Result<Kernel> lower(const Graph& graph, const Node& node, const Specialization& dims,
                     TileLayout layout) {
  if (node.op == OpKind::kView) return bad_input("view: expected no kernel for an alias");
  if (node.op == OpKind::kAttention) return attention_kernel(graph, node, dims);
  const Graph body = body_of(graph, node);
  ASSAY_TRY(const BodyFacts facts, study_body(body));
  const WeightSource* weight = product_weight(graph, node, body, facts);
  const auto packing = weight != nullptr ? weight->packing : std::nullopt;
  if (packing) layout = packing->layout;
  ASSAY_TRY(Kernel kernel, lower_body(body, facts, node.inputs.size(), packing, dims, layout));
  bind(node, body, kernel);
  mark_blocks(graph, node, layout, kernel);
  return kernel;
}

Status can_lower(const Graph& body) {
  ASSAY_CHECK(study_body(body));
  return {};
}

Result<Packing> product_packing(const Graph& graph, const Node& node, TileLayout layout) {
  const Graph body = body_of(graph, node);
  ASSAY_TRY(const BodyFacts facts, study_body(body));
  if (!facts.linear) return bad_input("{}: expected a product, found none", op_name(node.op));
  return suitable_packing(body, facts, layout);
}

}  // namespace assay::engine
