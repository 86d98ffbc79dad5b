// Follows the product's columns through a body.
#include "engine/passes/product_body.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "engine/passes/rewrite.h"

namespace assay::engine {
namespace {

// Which of the product's columns a value has.
enum class Lane {
  kNone,    // it doesn't come from the product
  kWhole,   // all of them
  kFirst,   // those of the first segment
  kSecond,  // those of the second
  kOther,   // those of another segment
  kBoth,    // of the first and the second, combined column by column
};

// Whether a value of this shape is addressed by the rows of the product: leading dims make them up.
bool keeps_rows(const SymbolicShape& shape, const Dim& rows) {
  Dim product(1);
  for (const Dim& dim : shape) {
    if (product == rows) return true;
    product = product * dim;
  }
  return product == rows;
}

class Columns {
 public:
  explicit Columns(const Graph& body) : body_(body), lanes_(body.values.size(), Lane::kNone) {}

  Result<Packing> run() {
    for (const Node& node : body_.nodes) {
      ASSAY_CHECK(follow(node));
    }
    if (linear_ == nullptr) return bad_input("expected a product, found none");
    return packing();
  }

 private:
  Status follow(const Node& node) {
    if (node.op == OpKind::kLinear) return start(node);
    if (linear_ == nullptr) return before(node);
    switch (node.op) {
      case OpKind::kSplit:
        return split(node);
      case OpKind::kView:
        return view(node);
      case OpKind::kActivate:
      case OpKind::kAdd:
      case OpKind::kMultiply:
        return combine(node);
      case OpKind::kRope:
        return heads(node, node.inputs[0]);
      case OpKind::kKvWrite:
        return heads(node, node.inputs[1]);
      default:
        return bad_input(
            "expected elementwise work, split, view, rope or kv_write behind a product, found {}",
            op_name(node.op));
    }
  }

  Status before(const Node& node) {
    const bool norm = node.op == OpKind::kLayerNorm || node.op == OpKind::kRmsNorm;
    if (norm ? has_norm_ : node.op != OpKind::kLastRows || has_norm_ || has_last_rows_) {
      return bad_input("expected at most last_rows and a norm before a product, found {}",
                       op_name(node.op));
    }
    (norm ? has_norm_ : has_last_rows_) = true;
    return {};
  }

  Status start(const Node& node) {
    if (linear_ != nullptr) return bad_input("expected one product, found two");
    for (size_t i = 1; i < node.inputs.size(); ++i) {
      if (!std::holds_alternative<ParameterSource>(body_.values[node.inputs[i]].source)) {
        return bad_input("expected a weight from outside, found one computed beside the product");
      }
    }
    const auto uses = std::ranges::count_if(body_.nodes, [&](const Node& other) {
      return std::ranges::find(other.inputs, node.inputs[1]) != other.inputs.end();
    });
    if (uses != 1) return bad_input("expected a weight for the product alone, found {} uses", uses);
    const SymbolicShape& shape = body_.values[node.outputs[0]].type.shape;
    if (!shape.back().is_constant()) {
      return bad_input("expected a constant number of columns, found {}", shape.back().to_string());
    }
    linear_ = &node;
    outputs_ = shape.back().factor();
    rows_ = elements(std::span(shape).first(shape.size() - 1));
    lanes_[node.outputs[0]] = Lane::kWhole;
    return {};
  }

  // A split cuts the product itself, and is all that is made of it.
  Status split(const Node& node) {
    const ValueId product = linear_->outputs[0];
    const bool alone =
        std::ranges::none_of(body_.outputs, [&](ValueId id) { return id == product; }) &&
        std::ranges::all_of(body_.nodes, [&](const Node& other) {
          return &other == &node || std::ranges::find(other.inputs, product) == other.inputs.end();
        });
    if (node.inputs[0] != product || !alone) {
      return bad_input("expected a split of the product that alone reads it, found another reader");
    }
    segments_ = std::get<SplitAttributes>(node.attributes).widths;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      lanes_[node.outputs[i]] = i == 0 ? Lane::kFirst : i == 1 ? Lane::kSecond : Lane::kOther;
    }
    return {};
  }

  Status view(const Node& node) {
    if (!keeps_rows(body_.values[node.outputs[0]].type.shape, rows_)) {
      return bad_input("expected a view that keeps the product's {} rows, found {}",
                       rows_.to_string(), to_string(body_.values[node.outputs[0]].type));
    }
    lanes_[node.outputs[0]] = lanes_[node.inputs[0]];
    return {};
  }

  Status combine(const Node& node) {
    Lane lane = Lane::kNone;
    for (const ValueId id : node.inputs) {
      const Lane other = lanes_[id];
      if (other == Lane::kNone || other == lane) continue;
      if (lane != Lane::kNone) {
        const bool halves = segments_.size() == 2 && lane != Lane::kWhole && other != Lane::kWhole;
        if (!halves) {
          return bad_input(
              "expected columns of one segment, or of two equal ones, found {} of them",
              segments_.size());
        }
        interleaved_ = true;
      }
      lane = lane == Lane::kNone ? other : Lane::kBoth;
    }
    if (lane == Lane::kNone) {
      return bad_input("expected work on the product, found {} beside it", op_name(node.op));
    }
    lanes_[node.outputs[0]] = lane;
    return {};
  }

  Status heads(const Node& node, ValueId x) {
    const SymbolicShape& shape = body_.values[x].type.shape;
    const Lane lane = lanes_[x];
    if (lane == Lane::kNone || lane == Lane::kBoth) {
      return bad_input("expected heads of one segment, found another value");
    }
    if (shape[0] != Dim::batch() || shape[1] != Dim::q_len() || !shape[2].is_constant() ||
        !shape[3].is_constant() || rows_ != shape[0] * shape[1]) {
      return bad_input(
          "expected fp32[batch, q_len, heads, head_dim] a row of the product, found {}",
          to_string(body_.values[x].type));
    }
    tile_ = std::lcm(tile_, shape[3].factor());
    if (tile_ > kMaxTile) {
      return bad_input("expected whole heads in a tile of at most {} columns, found {}", kMaxTile,
                       tile_);
    }
    has_heads_ = true;
    if (node.op == OpKind::kRope) lanes_[node.outputs[0]] = lane;
    return {};
  }

  Result<Packing> packing() const {
    if (interleaved_ && has_heads_) {
      return bad_input("expected segments that are apart where heads follow, found combined ones");
    }
    return Packing{.tile = interleaved_ ? 2 * Packing::kPanel : tile_,
                   .segments = segments_.empty() ? std::vector{outputs_} : segments_,
                   .interleaved = interleaved_};
  }

  const Graph& body_;
  std::vector<Lane> lanes_;  // by value
  const Node* linear_ = nullptr;
  Dim rows_ = Dim(1);
  int64_t outputs_ = 0;
  int64_t tile_ = Packing::kPanel;
  std::vector<int64_t> segments_;
  bool has_norm_ = false, has_last_rows_ = false, has_heads_ = false, interleaved_ = false;
};

}  // namespace

Result<Packing> product_packing(const Graph& body) {
  return Columns(body).run();
}

Result<Node> fused_product(const Graph& graph, const Wiring& wiring,
                           std::span<const size_t> members) {
  ASSAY_TRY(Node node, fused_node(graph, wiring, members));
  ASSAY_CHECK(product_packing(*std::get<FusedAttributes>(node.attributes).body));
  return node;
}

}  // namespace assay::engine
