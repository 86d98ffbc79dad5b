// Products of one input side by side: one product with their weights behind each other, and a
// split.
#include <algorithm>
#include <map>

#include "engine/passes/passes.h"
#include "engine/passes/rewrite.h"

namespace assay::engine {
namespace {

const LinearAttributes& linear_of(const Node& node) {
  return std::get<LinearAttributes>(node.attributes);
}

WeightLayout layout_of(const Node& node) {
  return linear_of(node).layout;
}

size_t output_axis(const Node& node) {
  return layout_of(node) == WeightLayout::kOutIn ? 0 : 1;
}

const WeightSource* weight_of(const Graph& graph, ValueId id) {
  return std::get_if<WeightSource>(&graph.values[id].source);
}

class Merger {
 public:
  explicit Merger(Graph& graph) : graph_(graph), wiring_(graph) {}

  PassOutcome run() {
    std::map<ValueId, std::vector<size_t>> by_input;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (node.op == OpKind::kLinear) by_input[node.inputs[0]].push_back(i);
    }
    std::map<size_t, Node> splits;  // by the index of the product that they follow
    std::vector<bool> merged(graph_.nodes.size());
    for (const auto& [input, products] : by_input) {
      for (const std::vector<size_t>& group : groups_of(products)) {
        if (group.size() < 2) continue;
        splits[group.front()] = merge(group);
        for (const size_t i : group) merged[i] = i != group.front();
        ++outcome_.changes;
      }
    }
    if (outcome_.changes == 0) return std::move(outcome_);
    std::vector<Node> nodes;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (!merged[i]) nodes.push_back(std::move(graph_.nodes[i]));
      if (const auto split = splits.find(i); split != splits.end()) nodes.push_back(split->second);
    }
    graph_.nodes = std::move(nodes);
    sweep(graph_);
    return std::move(outcome_);
  }

 private:
  // The products of one input in groups that can be merged; each joins the first that it fits.
  std::vector<std::vector<size_t>> groups_of(const std::vector<size_t>& products) {
    std::vector<std::vector<size_t>> groups;
    if (products.size() < 2) return groups;
    for (const size_t i : products) {
      const Node& node = graph_.nodes[i];
      const Status alone = check_alone(node);
      if (!alone) {
        reject(node, alone.error());
        continue;
      }
      const auto group = std::ranges::find_if(groups, [&](const std::vector<size_t>& g) {
        return check_beside(node, graph_.nodes[g.front()]).has_value();
      });
      if (group != groups.end()) {
        group->push_back(i);
      } else {
        groups.push_back({i});
      }
    }
    for (size_t g = 1; g < groups.size(); ++g) {
      const Node& node = graph_.nodes[groups[g].front()];
      reject(node, check_beside(node, graph_.nodes[groups.front().front()]).error());
    }
    return groups;
  }

  void reject(const Node& node, const Error& why) {
    outcome_.rejected.push_back(fmt::format("{}: {}", node_name(node), why.message));
  }

  Status check_alone(const Node& node) const {
    for (size_t i = 1; i < node.inputs.size(); ++i) {
      const size_t axis = i == 1 ? output_axis(node) : 0;
      const WeightSource* weight = weight_of(graph_, node.inputs[i]);
      if (weight == nullptr || weight->packing ||
          (weight->tensors.size() > 1 && weight->axis != axis) ||
          !graph_.values[node.inputs[i]].type.shape[axis].is_constant()) {
        return bad_input("expected weights as the checkpoint has them, found another value");
      }
    }
    if (!wiring_.read_once(node.inputs[1])) {
      return bad_input("expected a weight that this product alone reads, found {} readers",
                       wiring_.readers(node.inputs[1]).size());
    }
    return {};
  }

  Status check_beside(const Node& node, const Node& first) const {
    if (layout_of(node) != layout_of(first)) {
      return bad_input("expected the layout of {}, found the other", node_name(first));
    }
    if (linear_of(node).fp8 != linear_of(first).fp8) {
      return bad_input("expected a product in the type of {}, found one of two in fp8",
                       node_name(first));
    }
    if (node.inputs.size() != first.inputs.size()) {
      return bad_input("expected {} bias as {} has, found {}", first.inputs.size() > 2 ? "a" : "no",
                       node_name(first), node.inputs.size() > 2 ? "one" : "none");
    }
    for (size_t i = 1; i < node.inputs.size(); ++i) {
      const TensorType& type = graph_.values[node.inputs[i]].type;
      const TensorType& expected = graph_.values[first.inputs[i]].type;
      if (type.dtype != expected.dtype) {
        return bad_input("expected weights of {}, found {}", dtype_name(expected.dtype),
                         dtype_name(type.dtype));
      }
      const WeightFormat format = weight_of(graph_, node.inputs[i])->format;
      const WeightFormat wanted = weight_of(graph_, first.inputs[i])->format;
      if (format != wanted) {
        return bad_input("expected weights in {}, found {}", traits(wanted).name,
                         traits(format).name);
      }
      if (weight_of(graph_, node.inputs[i])->input_order !=
          weight_of(graph_, first.inputs[i])->input_order) {
        return bad_input("expected weights in the order of inputs that {} has, found another",
                         node_name(first));
      }
    }
    return {};
  }

  // The first product becomes the merged one; the split that gives the old results is returned.
  Node merge(const std::vector<size_t>& group) {
    Node& first = graph_.nodes[group.front()];
    Node split{OpKind::kSplit, {}, {}, SplitAttributes{}};
    auto& widths = std::get<SplitAttributes>(split.attributes).widths;
    for (const size_t i : group) {
      const ValueId output = graph_.nodes[i].outputs[0];
      widths.push_back(graph_.values[output].type.shape.back().factor());
      split.outputs.push_back(output);
    }
    Node product{OpKind::kLinear, {first.inputs[0]}, {}, first.attributes};
    for (size_t operand = 1; operand < first.inputs.size(); ++operand) {
      product.inputs.push_back(
          merged_weight(group, operand, operand == 1 ? output_axis(first) : 0));
    }
    TensorType type = graph_.values[first.outputs[0]].type;
    type.shape.back() = total(widths);
    product.outputs.push_back(add_value({type, NodeSource{}}));
    split.inputs = product.outputs;
    first = std::move(product);
    return split;
  }

  ValueId merged_weight(const std::vector<size_t>& group, size_t operand, size_t axis) {
    WeightSource merged{.tensors = {}, .axis = axis};
    const WeightSource& front = *weight_of(graph_, graph_.nodes[group.front()].inputs[operand]);
    merged.format = front.format;
    merged.input_order = front.input_order;
    TensorType type = graph_.values[graph_.nodes[group.front()].inputs[operand]].type;
    for (const size_t i : group) {
      const ValueId id = graph_.nodes[i].inputs[operand];
      const WeightSource& part = *weight_of(graph_, id);
      merged.tensors.insert(merged.tensors.end(), part.tensors.begin(), part.tensors.end());
      if (part.tensors.size() > 1) {
        merged.widths.insert(merged.widths.end(), part.widths.begin(), part.widths.end());
      } else {
        merged.widths.push_back(graph_.values[id].type.shape[axis].factor());
      }
    }
    type.shape[axis] = total(merged.widths);
    return add_value({type, merged});
  }

  static Dim total(const std::vector<int64_t>& widths) {
    int64_t sum = 0;
    for (const int64_t width : widths) sum += width;
    return Dim(sum);
  }

  ValueId add_value(const Value& value) {
    graph_.values.push_back(value);
    return static_cast<ValueId>(graph_.values.size() - 1);
  }

  Graph& graph_;
  Wiring wiring_;
  PassOutcome outcome_;
};

}  // namespace

PassOutcome merge_products(Graph& graph) {
  return Merger(graph).run();
}

}  // namespace assay::engine
