// One walk over a body's nodes: each operator's demands on its operands, and the sources of values.
#include "engine/codegen/lower/body.h"

#include <algorithm>

namespace assay::engine {
namespace {

Dim leading(const SymbolicShape& shape) {
  return elements(std::span(shape).first(shape.size() - 1));
}

bool is_parameter(const Graph& body, ValueId value) {
  return std::holds_alternative<ParameterSource>(body.values[value].source);
}

class BodyStudy {
 public:
  explicit BodyStudy(const Graph& body) : body_(body) {
    facts_.producers.assign(body.values.size(), -1);
    facts_.behind.assign(body.values.size(), false);
    facts_.parts.resize(body.values.size());
    facts_.turned.assign(body.values.size(), false);
    split_.assign(body.values.size(), false);
    reduced_.assign(body.values.size(), false);
    for (size_t i = 0; i < body.nodes.size(); ++i) {
      for (const ValueId id : body.nodes[i].outputs) facts_.producers[id] = static_cast<int64_t>(i);
    }
  }

  Result<BodyFacts> run() {
    ASSAY_CHECK(find_rows());
    for (size_t i = 0; i < body_.nodes.size(); ++i) {
      if (Status status = visit(i); !status) {
        return with_context(op_name(body_.nodes[i].op), status.error());
      }
    }
    ASSAY_CHECK(check_outputs());
    return std::move(facts_);
  }

 private:
  const TensorType& type(ValueId value) const { return body_.values[value].type; }

  // Operators that work on a last dim define a row; without any, all constants belong to it.
  Status find_rows() {
    int64_t factor = 1;
    for (const Node& node : body_.nodes) {
      const TensorType& x = type(node.inputs[0]);
      switch (node.op) {
        case OpKind::kLinear:
        case OpKind::kLayerNorm:
        case OpKind::kRmsNorm:
        case OpKind::kArgmax:
        case OpKind::kSplit:
          if (!x.shape.back().is_constant()) {
            return bad_input("{}: expected a last dim that is a constant, found {}",
                             op_name(node.op), to_string(x));
          }
          factor = std::max(factor, leading(x.shape).factor());
          break;
        case OpKind::kEmbedding:
          factor = std::max(factor, elements(x.shape).factor());
          break;
        default:
          break;
      }
    }
    row_factor_ = factor;
    const auto output = std::ranges::find_if(body_.outputs, [&](ValueId id) { return !cache(id); });
    const ValueId value = output != body_.outputs.end() ? *output : written(body_.outputs.at(0));
    facts_.rows = symbols(value) * Dim(factor);
    return {};
  }

  bool cache(ValueId id) const {
    const int64_t producer = facts_.producers[id];
    return producer >= 0 && body_.nodes[static_cast<size_t>(producer)].op == OpKind::kKvWrite;
  }
  ValueId written(ValueId id) const {  // the value stored in the cache
    return cache(id) ? body_.nodes[static_cast<size_t>(facts_.producers[id])].inputs[1] : id;
  }
  Dim symbols(ValueId id) const { return elements(type(id).shape).symbols(); }

  // The value has rows of this many elements.
  Status expect_row(ValueId id, int64_t width) const {
    if (elements(type(id).shape).factor() == width * row_factor_) return {};
    return bad_input("expected rows of {}, as other operators have them, found {}", width,
                     to_string(type(id)));
  }

  Status visit(size_t index) {
    const Node& node = body_.nodes[index];
    ASSAY_CHECK(visit_operator(index, node));
    for (const ValueId out : node.outputs) inherit(node, out);
    return check_behind(node);
  }

  Status visit_operator(size_t index, const Node& node) {
    const ValueId x = node.inputs[0];
    switch (node.op) {
      case OpKind::kLinear:
        return visit_linear(index, node);
      case OpKind::kLayerNorm:
      case OpKind::kRmsNorm:
      case OpKind::kArgmax:
        reduced_[node.outputs[0]] = true;
        if (facts_.turned[x]) return bad_input("expected no rope before it, found one");
        return expect_row(x, type(x).shape.back().factor());
      case OpKind::kSplit:
        if (facts_.behind[x] && !facts_.split) facts_.split = index;
        return expect_row(x, type(x).shape.back().factor());
      case OpKind::kEmbedding:
        return expect_row(x, 1);
      case OpKind::kPositions:
        return expect_places(node.inputs[0], node.inputs[1]);
      case OpKind::kRope:
        ASSAY_CHECK(expect_places(node.inputs[1], node.inputs[2]));
        facts_.turned[node.outputs[0]] = true;
        return visit_heads(x);
      case OpKind::kKvWrite:
        if (!is_parameter(body_, x)) return bad_input("expected a cache, found another value");
        ASSAY_CHECK(expect_places(node.inputs[2], node.inputs.back()));
        return visit_heads(node.inputs[1]);
      case OpKind::kAttention:
      case OpKind::kFused:
        return bad_input("expected a kernel of its own");
      default:
        return {};
    }
  }

  // Read by the row of the batch, wherever the body's rows are.
  Status expect_places(ValueId lengths, ValueId other) const {
    if (is_parameter(body_, lengths) && is_parameter(body_, other)) return {};
    return bad_input(
        "expected lengths, padding and slots as parameters, found a value of the body");
  }

  Status visit_linear(size_t index, const Node& node) {
    if (facts_.linear) return bad_input("expected one product, found a second");
    if (!is_parameter(body_, node.inputs[1])) return bad_input("expected a parameter as weight");
    if (facts_.turned[node.inputs[0]]) return bad_input("expected no rope before it, found one");
    facts_.linear = index;
    facts_.behind[node.outputs[0]] = true;
    return expect_row(node.inputs[0], type(node.inputs[0]).shape.back().factor());
  }

  // [batch, q_len, heads, head_dim], and all heads alike: a loop over half heads serves rope.
  Status visit_heads(ValueId x) {
    const SymbolicShape& shape = type(x).shape;
    if (row_factor_ != 1 || leading(shape).symbols() != Dim::batch() * Dim::q_len()) {
      return bad_input("expected a row for each position, found {}", to_string(type(x)));
    }
    const int64_t head_dim = shape.back().factor();
    if (facts_.head_dim != 0 && facts_.head_dim != head_dim) {
      return bad_input("expected heads of {}, found {}", facts_.head_dim, head_dim);
    }
    facts_.head_dim = head_dim;
    return {};
  }

  // Passes the facts about a node's inputs on to its output.
  void inherit(const Node& node, ValueId out) {
    std::optional<std::optional<size_t>> part;
    for (const ValueId in : node.inputs) {
      facts_.turned[out] = facts_.turned[out] || facts_.turned[in];
      reduced_[out] = reduced_[out] || reduced_[in];
      split_[out] = split_[out] || split_[in];
      if (!facts_.behind[in]) continue;
      facts_.behind[out] = true;
      part = part && *part != facts_.parts[in] ? std::nullopt : facts_.parts[in];
    }
    if (part) facts_.parts[out] = *part;
    if (node.op == OpKind::kSplit && facts_.split &&
        body_.nodes[*facts_.split].outputs[0] == node.outputs[0]) {
      split_[out] = true;
      facts_.parts[out] =
          static_cast<size_t>(std::ranges::find(node.outputs, out) - node.outputs.begin());
    }
  }

  // Behind a product there is a tile of its columns at hand, and not the row.
  Status check_behind(const Node& node) const {
    if (!facts_.behind[node.outputs[0]] || node.op == OpKind::kLinear) return {};
    switch (node.op) {
      case OpKind::kAdd:
      case OpKind::kMultiply:
      case OpKind::kActivate:
      case OpKind::kView:
      case OpKind::kRope:
      case OpKind::kKvWrite:
        break;
      case OpKind::kSplit:
        if (facts_.producers[node.inputs[0]] >= 0 &&
            body_.nodes[*facts_.split].outputs[0] == node.outputs[0] && direct(node.inputs[0])) {
          break;
        }
        return bad_input("expected one split, of the product itself");
      default:
        return bad_input("expected it before the product, found it behind");
    }
    for (const ValueId in : node.inputs) {
      if (!facts_.behind[in] && reduced_[in]) {
        return bad_input("expected row reductions to be read by the product alone");
      }
    }
    return {};
  }

  // The product, but for views.
  bool direct(ValueId id) const {
    const auto producer = static_cast<size_t>(facts_.producers[id]);
    if (facts_.linear == producer) return true;
    return body_.nodes[producer].op == OpKind::kView && direct(body_.nodes[producer].inputs[0]);
  }

  Status check_outputs() {
    bool all_meet = facts_.split.has_value();
    for (const ValueId id : body_.outputs) {
      const ValueId value = written(id);
      if (symbols(value) * Dim(row_factor_) != facts_.rows) {
        return bad_input("outputs: expected {} rows each, found {}", facts_.rows.to_string(),
                         to_string(type(value)));
      }
      if (elements(type(value).shape).factor() % row_factor_ != 0) {
        return bad_input("outputs: expected whole rows, found {}", to_string(type(value)));
      }
      if (facts_.linear && !facts_.behind[id]) {
        return bad_input("outputs: expected them behind the product, found another");
      }
      if (facts_.split && !split_[id]) {
        return bad_input("outputs: expected none of the product before its split, found one");
      }
      all_meet = all_meet && !facts_.parts[id];
    }
    facts_.gated = all_meet;
    return check_parts();
  }

  // Each output needs one part, or all of them both of two equal ones.
  Status check_parts() const {
    if (!facts_.split) return {};
    const auto& widths = std::get<SplitAttributes>(body_.nodes[*facts_.split].attributes).widths;
    if (facts_.gated) {
      if (widths.size() == 2 && widths[0] == widths[1] && facts_.head_dim == 0) return {};
      return bad_input("split: expected two equal parts to meet, found {} parts", widths.size());
    }
    for (const ValueId id : body_.outputs) {
      if (!facts_.parts[id]) return bad_input("outputs: expected one part of the split each");
    }
    for (const int64_t width : widths) {
      if (facts_.head_dim != 0 && width % facts_.head_dim != 0) {
        return bad_input("split: expected whole heads of {}, found {}", facts_.head_dim, width);
      }
    }
    return {};
  }

  const Graph& body_;
  BodyFacts facts_;
  int64_t row_factor_ = 1;
  std::vector<bool> split_;    // by value: the split of the product before it
  std::vector<bool> reduced_;  // a row reduction before it
};

}  // namespace

int64_t BodyFacts::width(const Graph& body, ValueId value) const {
  return elements(body.values[value].type.shape).factor() / rows.factor();
}

Result<BodyFacts> study_body(const Graph& body) {
  return BodyStudy(body).run();
}

}  // namespace assay::engine
