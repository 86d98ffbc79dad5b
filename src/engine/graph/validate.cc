// The rules for every graph, whoever built or rewrote it.
#include <algorithm>
#include <numeric>

#include "engine/graph/graph.h"

namespace assay::engine {
namespace {

// A merged weight's parts and a packing's segments must add up to the tensor they describe.
Status check_weight(const WeightSource& weight, const TensorType& type) {
  if (weight.tensors.empty()) return bad_input("weight: expected the name of a tensor, found none");
  if (weight.tensors.size() > 1) {
    const int64_t sum = std::accumulate(weight.widths.begin(), weight.widths.end(), int64_t{0});
    if (weight.widths.size() != weight.tensors.size() || weight.axis >= type.shape.size() ||
        type.shape[weight.axis] != Dim(sum)) {
      return bad_input("weight: expected {} widths that add up along axis {}, found [{}] of {}",
                       weight.tensors.size(), weight.axis, fmt::join(weight.widths, ", "),
                       to_string(type));
    }
  }
  if (!weight.packing) return {};
  const Packing& packing = *weight.packing;
  const int64_t sum = std::accumulate(packing.segments.begin(), packing.segments.end(), int64_t{0});
  const bool fits = packing.tile > 0 && packing.tile % Packing::kPanel == 0 &&
                    type.shape.size() == 2 && weight.axis < 2 &&
                    type.shape[weight.axis] == Dim(sum);
  const bool rows = packing.layout == TileLayout::kRows;
  const bool halves = packing.segments.size() == 2 && packing.segments[0] == packing.segments[1] &&
                      (rows || packing.tile % (2 * Packing::kPanel) == 0);
  const bool heads = packing.half_head == 0 || (rows && !packing.interleaved);
  if (fits && heads && (halves || !packing.interleaved)) return {};
  return bad_input(
      "packing: expected whole panels and segments that add up along axis {}{}, found {} "
      "of {}",
      weight.axis, packing.interleaved ? ", two equal ones" : "", to_string(packing),
      to_string(type));
}

// Walks the nodes in order and knows which values exist and which caches have been overwritten.
class Validator {
 public:
  // The body of a fused node has parameters for sources and nothing else.
  Validator(const Graph& graph, bool is_body)
      : graph_(graph),
        is_body_(is_body),
        defined_(graph.values.size()),
        overwritten_(graph.values.size()) {
    for (size_t i = 0; i < graph.values.size(); ++i) {
      defined_[i] = !std::holds_alternative<NodeSource>(graph.values[i].source);
    }
  }

  Status check() {
    for (size_t i = 0; i < defined_.size(); ++i) {
      if (!defined_[i]) continue;
      if (std::holds_alternative<ParameterSource>(graph_.values[i].source) != is_body_) {
        return bad_input(
            "%{}: expected {}", i,
            is_body_ ? "a parameter, as in every body" : "no parameter outside a body");
      }
      if (const auto* weight = std::get_if<WeightSource>(&graph_.values[i].source)) {
        if (Status status = check_weight(*weight, graph_.values[i].type); !status) {
          return with_context(fmt::format("%{}", i), status.error());
        }
      }
    }
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (Status status = check_node(graph_.nodes[i]); !status) {
        return with_context(fmt::format("node {} ({})", i, op_name(graph_.nodes[i].op)),
                            status.error());
      }
    }
    for (const ValueId id : graph_.outputs) {
      if (Status status = check_use(id); !status) return with_context("outputs", status.error());
    }
    for (size_t i = 0; i < defined_.size(); ++i) {
      if (!defined_[i])
        return bad_input("value %{}: expected a node that computes it, found none", i);
    }
    return {};
  }

 private:
  Status check_use(ValueId id) const {
    if (id >= defined_.size()) return bad_input("%{}: expected a value of the graph", id);
    if (!defined_[id]) return bad_input("%{}: expected a value defined before its use", id);
    if (overwritten_[id]) return bad_input("%{}: expected a cache that no write has consumed", id);
    return {};
  }

  Status check_node(const Node& node) {
    std::vector<TensorType> inputs;
    for (const ValueId id : node.inputs) {
      ASSAY_CHECK(check_use(id));
      inputs.push_back(graph_.values[id].type);
    }
    ASSAY_TRY(const auto types, infer_types(node.op, node.attributes, inputs));
    if (types.size() != node.outputs.size()) {
      return bad_input("outputs: expected {}, found {}", types.size(), node.outputs.size());
    }
    for (size_t i = 0; i < types.size(); ++i) ASSAY_CHECK(define(node.outputs[i], types[i]));
    if (node.op == OpKind::kKvWrite) return overwrite(node.inputs[0]);
    if (node.op == OpKind::kFused) return check_body(node);
    return {};
  }

  Status overwrite(ValueId cache) {
    const Source& source = graph_.values[cache].source;
    if (!std::holds_alternative<CacheSource>(source) &&
        !std::holds_alternative<ParameterSource>(source)) {
      return bad_input("%{}: expected a layer's cache, found another value", cache);
    }
    overwritten_[cache] = true;
    return {};
  }

  Status check_body(const Node& node) {
    const Graph& body = *std::get<FusedAttributes>(node.attributes).body;
    if (is_body_) return bad_input("body: expected no fused node in it, found one");
    if (Status status = Validator(body, true).check(); !status) {
      return with_context("body", status.error());
    }
    for (const Node& inner : body.nodes) {
      if (inner.op != OpKind::kKvWrite) continue;
      const auto& parameter = std::get<ParameterSource>(body.values[inner.inputs[0]].source);
      ASSAY_CHECK(overwrite(node.inputs[parameter.index]));
    }
    return {};
  }

  Status define(ValueId id, const TensorType& type) {
    if (id >= defined_.size()) return bad_input("%{}: expected a value of the graph", id);
    if (defined_[id]) return bad_input("%{}: expected one definition, found a second", id);
    if (graph_.values[id].type != type) {
      return bad_input("%{}: expected {}, found {}", id, to_string(type),
                       to_string(graph_.values[id].type));
    }
    defined_[id] = true;
    return {};
  }

  const Graph& graph_;
  bool is_body_;
  std::vector<bool> defined_;
  std::vector<bool> overwritten_;
};

}  // namespace

Status validate(const Graph& graph) {
  return Validator(graph, false).check();
}

}  // namespace assay::engine
