// Rows: reductions, then loops of stores. Products: the same before the product for its inputs, and
// behind it for each segment's tiles.
#include "engine/codegen/lower/lower_body.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "engine/codegen/lower/row_values.h"
#include "engine/codegen/lower/stores.h"

namespace assay::engine {
namespace {

using ir::ExprId;
using ir::Op;

constexpr int64_t kGatedTile = 2 * Packing::kPanel;  // a panel of each part

std::string label_of(const Graph& body) {
  std::string label;
  for (const Node& node : body.nodes) {
    if (node.op == OpKind::kView) continue;
    label += (label.empty() ? "" : " ") + std::string(op_name(node.op));
  }
  return label;
}

class Lowering {
 public:
  Lowering(const Graph& body, const BodyFacts& facts, size_t parameters, const Specialization& dims)
      : body_(body), facts_(facts), values_(body, facts, kernel_) {
    kernel_.label = label_of(body);
    kernel_.dims = dims;
    add_buffers(parameters);
  }

  Kernel rows() {
    RowsKernel rows{.rows = facts_.rows, .row = arena().new_var(), .body = {}};
    const ExprId row = arena().var(rows.row);
    ir::Block stores;
    // Outputs of one width share loops.
    for (size_t i = 0; i < targets_.size();) {
      const int64_t width = columns(targets_[i].output);
      std::vector<Target> group;
      while (i < targets_.size() && columns(targets_[i].output) == width) {
        group.push_back(targets_[i++]);
      }
      store(group, row, {arena().index(0), arena().index(width)}, stores);
    }
    rows.body = values_.take_setup();
    rows.body.insert(rows.body.end(), stores.begin(), stores.end());
    kernel_.body = std::move(rows);
    return std::move(kernel_);
  }

  Kernel product(const Packing& packing) {
    const Node& linear = body_.nodes[*facts_.linear];
    ProductKernel product;
    product.rows = facts_.rows;
    product.packing = packing;
    product.fp8 = std::get<LinearAttributes>(linear.attributes).fp8;
    product.inputs = body_.values[linear.inputs[0]].type.shape.back().factor();
    product.weight = parameter_buffer(linear.inputs[1]);
    product.row = arena().new_var();
    product.first_column = arena().new_var();
    if (packing.layout == TileLayout::kRows) product.column_count = arena().new_var();
    lower_inputs(linear.inputs[0], product);
    product.tile = local("tile");
    int64_t before = 0;
    for (size_t i = 0; i < (packing.interleaved ? 1 : packing.segments.size()); ++i) {
      product.epilogues.push_back(epilogue(product, i, before));
      before += packing.segments[i];
    }
    kernel_.body = std::move(product);
    return std::move(kernel_);
  }

 private:
  ir::Arena& arena() { return kernel_.exprs; }

  void add_buffers(size_t parameters) {
    for (size_t i = 0; i < parameters; ++i) {
      kernel_.buffers.push_back({fmt::format("in{}", i)});
    }
    for (const Value& value : body_.values) {
      if (const auto* source = std::get_if<ParameterSource>(&value.source)) {
        kernel_.buffers[source->index].dtype = value.type.dtype;
      }
    }
    for (const ValueId output : body_.outputs) {
      if (is_cache_write(body_, output)) {
        const auto node = static_cast<size_t>(facts_.producers[output]);
        const ir::BufferId cache = parameter_buffer(body_.nodes[node].inputs[0]);
        kernel_.buffers[cache].writable = true;
        targets_.push_back({output, cache});
      } else {
        targets_.push_back({output, static_cast<ir::BufferId>(kernel_.buffers.size())});
        kernel_.buffers.push_back({fmt::format("out{}", kernel_.buffers.size() - parameters),
                                   body_.values[output].type.dtype, true});
      }
    }
    kernel_.bound_buffers = kernel_.buffers.size();
  }

  ir::BufferId parameter_buffer(ValueId value) const {
    return static_cast<ir::BufferId>(std::get<ParameterSource>(body_.values[value].source).index);
  }

  ir::BufferId local(const char* name) {
    kernel_.buffers.push_back({name, DType::kF32, true});
    return static_cast<ir::BufferId>(kernel_.buffers.size() - 1);
  }

  // Columns of an output, or of the value stored in a cache.
  int64_t columns(ValueId output) const {
    if (!is_cache_write(body_, output)) return facts_.width(body_, output);
    const auto node = static_cast<size_t>(facts_.producers[output]);
    return facts_.width(body_, body_.nodes[node].inputs[1]);
  }

  void store(const std::vector<Target>& targets, ExprId row, const ColumnRange& range,
             ir::Block& block) {
    append_stores(body_, facts_, targets, row, range, values_, arena(), block);
  }

  // A parameter is read where it lies; an operand that has to be computed, or gathered from several
  // rows, goes through a buffer of the kernel's own.
  void lower_inputs(ValueId x, ProductKernel& product) {
    const ValueId source = gathered(shown(x));
    product.has_prologue = facts_.producers[source] >= 0;
    if (!product.has_prologue) {
      product.x = parameter_buffer(source);
      return;
    }
    product.norm = rms_prologue(source, product);
    product.x = local("x");
    const ir::VarId column = arena().new_var();
    const ExprId value =
        values_.at(x, arena().var(product.row), {arena().index(0), arena().var(column)});
    product.prologue = values_.take_setup();
    product.prologue.push_back({ir::Loop{column,
                                         arena().index(product.inputs),
                                         {{ir::Store{product.x, arena().var(column), value}}}}});
  }

  // The value that `value` shows through views.
  ValueId shown(ValueId value) const {
    while (facts_.producers[value] >= 0) {
      const Node& node = body_.nodes[static_cast<size_t>(facts_.producers[value])];
      if (node.op != OpKind::kView) break;
      value = node.inputs[0];
    }
    return value;
  }

  // In a step of one position the last rows are all rows.
  ValueId gathered(ValueId value) const {
    if (facts_.producers[value] < 0 || kernel_.dims.q_len != 1) return value;
    const Node& node = body_.nodes[static_cast<size_t>(facts_.producers[value])];
    return node.op == OpKind::kLastRows ? shown(node.inputs[0]) : value;
  }

  // The prologue if it is an RMS norm of a parameter, or of its last rows; else absent.
  std::optional<RmsPrologue> rms_prologue(ValueId source, const ProductKernel& product) {
    const Node& norm = body_.nodes[static_cast<size_t>(facts_.producers[source])];
    if (norm.op != OpKind::kRmsNorm) return std::nullopt;
    ExprId row = arena().var(product.row);
    ValueId x = shown(norm.inputs[0]);
    if (facts_.producers[x] >= 0) {
      const Node& last = body_.nodes[static_cast<size_t>(facts_.producers[x])];
      if (last.op != OpKind::kLastRows) return std::nullopt;
      const ExprId q_len = values_.dim(ir::DimSymbol::kQLen);
      const ExprId end =
          arena().make(Op::kIndexAdd, {arena().make(Op::kIndexMul, {row, q_len}), q_len});
      row = arena().make(Op::kIndexSub, {end, arena().index(1)});
      x = shown(last.inputs[0]);
    }
    if (facts_.producers[x] >= 0 || body_.values[x].type.dtype != DType::kF32) return std::nullopt;
    return RmsPrologue{.x = parameter_buffer(x),
                       .x_row = row,
                       .weight = parameter_buffer(norm.inputs[1]),
                       .eps = std::get<NormAttributes>(norm.attributes).eps};
  }

  ir::Block epilogue(const ProductKernel& product, size_t segment, int64_t before) {
    const Packing& packing = product.packing;
    const ExprId in_segment = arena().var(product.first_column);
    const ExprId in_product = arena().make(Op::kIndexAdd, {in_segment, arena().index(before)});
    TileColumns tile{product.tile, in_product, {}, packing.tile};
    if (packing.interleaved) tile.second_at = packing.segments[0];
    tile.rows = packing.layout == TileLayout::kRows;
    tile.half_head = packing.half_head;
    values_.set_tile(tile);
    std::vector<Target> targets;
    for (const Target& target : targets_) {
      const auto& part = facts_.parts[target.output];
      if (!part || *part == segment) targets.push_back(target);
    }
    ir::Block block;
    store(targets, arena().var(product.row), {in_segment, tile_columns(product, segment)}, block);
    values_.take_setup();
    return block;
  }

  // All of a tile, but for padding behind the segment's end.
  ExprId tile_columns(const ProductKernel& product, size_t segment) {
    const Packing& packing = product.packing;
    const int64_t most = packing.interleaved ? packing.tile / 2 : packing.tile;
    const int64_t width = packing.segments[segment];
    const ExprId all = packing.layout == TileLayout::kRows ? arena().var(product.column_count)
                                                           : arena().index(most);
    if (width % most == 0) return all;
    const ExprId left =
        arena().make(Op::kIndexSub, {arena().index(width), arena().var(product.first_column)});
    const ExprId is_last = arena().make(Op::kIndexLess, {left, all});
    return arena().make(Op::kSelect, {is_last, left, all});
  }

  const Graph& body_;
  const BodyFacts& facts_;
  Kernel kernel_;
  RowValues values_;
  std::vector<Target> targets_;
};

// A tile holds whole heads, and the parts of a split are segments.
Status check_packing(const Packing& packing, const Packing& suitable) {
  Packing of_its_tile = suitable;
  of_its_tile.tile = packing.tile;
  if (packing.tile % suitable.tile == 0 && packing == of_its_tile) return {};
  return bad_input("packing: expected {}, found {}", to_string(suitable), to_string(packing));
}

}  // namespace

bool is_cache_write(const Graph& body, ValueId value) {
  for (const Node& node : body.nodes) {
    if (node.op == OpKind::kKvWrite && node.outputs[0] == value) return true;
  }
  return false;
}

Packing suitable_packing(const Graph& body, const BodyFacts& facts, TileLayout layout) {
  Packing packing;
  if (facts.split) {
    packing.segments = std::get<SplitAttributes>(body.nodes[*facts.split].attributes).widths;
  } else {
    const ValueId product = body.nodes[*facts.linear].outputs[0];
    packing.segments = {body.values[product].type.shape.back().factor()};
  }
  packing.interleaved = facts.gated;
  packing.layout = layout;
  if (layout == TileLayout::kRows) {
    const bool turned = std::ranges::find(facts.turned, true) != facts.turned.end();
    if (turned) packing.half_head = facts.head_dim / 2;
    return packing;
  }
  if (facts.gated) packing.tile = kGatedTile;
  if (facts.head_dim != 0) packing.tile = std::lcm(packing.tile, facts.head_dim);
  return packing;
}

Result<Kernel> lower_body(const Graph& body, const BodyFacts& facts, size_t parameters,
                          const std::optional<Packing>& packing, const Specialization& dims,
                          TileLayout layout) {
  Lowering lowering(body, facts, parameters, dims);
  if (!facts.linear) return lowering.rows();
  const Packing suitable = suitable_packing(body, facts, layout);
  if (packing) ASSAY_CHECK(check_packing(*packing, suitable));
  return lowering.product(packing.value_or(suitable));
}

}  // namespace assay::engine
