// Graphs as text, for tests and for reading.
#include <array>

#include "engine/graph/graph.h"

namespace assay::engine {
namespace {

std::string shape_text(const SymbolicShape& shape) {
  std::string text;
  for (const Dim& dim : shape) text += (text.empty() ? "" : ", ") + dim.to_string();
  return fmt::format("[{}]", text);
}

std::string ids_text(const std::vector<ValueId>& ids) {
  std::string text;
  for (const ValueId id : ids) text += fmt::format("{}%{}", text.empty() ? "" : ", ", id);
  return text;
}

std::string_view activation_name(Activation kind) {
  switch (kind) {
    case Activation::kGeluTanh:
      return "gelu_tanh";
    case Activation::kGeluErf:
      return "gelu_erf";
    case Activation::kRelu:
      return "relu";
    case Activation::kSilu:
      return "silu";
  }
  return "";
}

struct AttributesText {
  std::string operator()(std::monostate) const { return ""; }
  std::string operator()(const NormAttributes& a) const { return fmt::format(" eps={}", a.eps); }
  std::string operator()(const ActivateAttributes& a) const {
    return fmt::format(" kind={}", activation_name(a.kind));
  }
  std::string operator()(const LinearAttributes& a) const {
    const std::string layout = a.layout == WeightLayout::kOutIn ? "out_in" : "in_out";
    return " layout=" + layout + (a.fp8 ? " fp8" : "");
  }
  std::string operator()(const SplitAttributes& a) const {
    return fmt::format(" widths=[{}]", fmt::join(a.widths, ", "));
  }
  std::string operator()(const ViewAttributes&) const { return ""; }   // the output's type says it
  std::string operator()(const FusedAttributes&) const { return ""; }  // the body follows
};

struct SourceText {
  std::string operator()(const NodeSource&) const { return ""; }
  std::string operator()(const InputSource& s) const {
    switch (s.kind) {
      case InputKind::kIds:
        return "input ids";
      case InputKind::kLengths:
        return "input lengths";
      case InputKind::kPad:
        return "input pad";
      case InputKind::kSlots:
        return "input slots";
    }
    return "";
  }
  std::string operator()(const WeightSource& s) const {
    std::string text = fmt::format("weight \"{}\"", fmt::join(s.tensors, "\", \""));
    if (traits(s.format).in_blocks()) text += fmt::format(" {}", traits(s.format).name);
    if (s.input_order != nullptr) text += " inputs in an order of their own";
    if (s.packing) {
      text += fmt::format(" packed tile={}{} segments=[{}]", s.packing->tile,
                          s.packing->interleaved ? " interleaved" : "",
                          fmt::join(s.packing->segments, ", "));
      if (s.packing->layout == TileLayout::kRows) text += " rows";
      if (s.packing->half_head > 0) text += fmt::format(" half_head={}", s.packing->half_head);
    }
    return text;
  }
  std::string operator()(const ConstantSource& s) const {
    return s.kind == ConstantKind::kRopeCos ? "constant rope_cos" : "constant rope_sin";
  }
  std::string operator()(const CacheSource& s) const {
    return fmt::format("cache layer={} {}", s.layer,
                       s.part == CachePart::kKeys ? "keys" : "values");
  }
  std::string operator()(const ParameterSource& s) const {
    return fmt::format("parameter {}", s.index);
  }
};

std::string indented(const std::string& text) {
  std::string result;
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t end = text.find('\n', begin) + 1;
    result += "  " + text.substr(begin, end - begin);
    begin = end;
  }
  return result;
}

std::string node_text(const Graph& graph, const Node& node) {
  std::string types;
  for (const ValueId id : node.outputs) {
    types += (types.empty() ? "" : ", ") + to_string(graph.values[id].type);
  }
  std::string text = fmt::format("{} = {}({}){} : {}\n", ids_text(node.outputs), op_name(node.op),
                                 ids_text(node.inputs), to_string(node.attributes), types);
  if (const auto* fused = std::get_if<FusedAttributes>(&node.attributes)) {
    text += indented(dump(*fused->body));
  }
  return text;
}

}  // namespace

std::string_view op_name(OpKind op) {
  switch (op) {
    case OpKind::kEmbedding:
      return "embedding";
    case OpKind::kPositions:
      return "positions";
    case OpKind::kAdd:
      return "add";
    case OpKind::kMultiply:
      return "multiply";
    case OpKind::kActivate:
      return "activate";
    case OpKind::kLayerNorm:
      return "layer_norm";
    case OpKind::kRmsNorm:
      return "rms_norm";
    case OpKind::kLinear:
      return "linear";
    case OpKind::kRope:
      return "rope";
    case OpKind::kKvWrite:
      return "kv_write";
    case OpKind::kAttention:
      return "attention";
    case OpKind::kLastRows:
      return "last_rows";
    case OpKind::kArgmax:
      return "argmax";
    case OpKind::kSplit:
      return "split";
    case OpKind::kView:
      return "view";
    case OpKind::kFused:
      return "fused";
  }
  return "unknown";
}

std::string to_string(const TensorType& type) {
  return fmt::format("{}{}", dtype_name(type.dtype), shape_text(type.shape));
}

std::string to_string(const Source& source) {
  return std::visit(SourceText{}, source);
}

std::string to_string(const Attributes& attributes) {
  return std::visit(AttributesText{}, attributes);
}

std::string dump(const Graph& graph) {
  std::string text;
  for (ValueId id = 0; id < graph.values.size(); ++id) {
    const Value& value = graph.values[id];
    if (std::holds_alternative<NodeSource>(value.source)) continue;
    text += fmt::format("%{} = {} : {}\n", id, to_string(value.source), to_string(value.type));
  }
  for (const Node& node : graph.nodes) text += node_text(graph, node);
  return text + fmt::format("return {}\n", ids_text(graph.outputs));
}

}  // namespace assay::engine
