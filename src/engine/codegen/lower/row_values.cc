// One case for each operator; the formulas are OpLibrary's.
#include "engine/codegen/lower/row_values.h"

#include <array>
#include <cassert>
#include <utility>

namespace assay::engine {

using ir::ExprId;
using ir::Op;

ExprId RowValues::dim(ir::DimSymbol symbol) {
  const Specialization& dims = kernel_.dims;
  const std::array<std::optional<int64_t>, 4> known = {dims.batch, dims.q_len, dims.kv_len,
                                                       dims.capacity};
  const auto value = known[static_cast<size_t>(symbol)];
  return value ? arena_.index(*value) : arena_.dim(symbol);
}

ExprId RowValues::index_of(const Column& column) {
  const ExprId index = add(column.first, column.offset);
  return column.high ? add(index, arena_.index(column.half)) : index;
}

ir::Block RowValues::take_setup() {
  known_.clear();
  means_.clear();
  argmaxes_.clear();
  return std::exchange(setup_, {});
}

ExprId RowValues::parameter(ValueId value, ExprId index) {
  const auto& source = std::get<ParameterSource>(body_.values[value].source);
  return arena_.load(static_cast<ir::BufferId>(source.index), index);
}

ExprId RowValues::at(ValueId value, ExprId row, const Column& column) {
  const int64_t producer = facts_.producers[value];
  if (producer < 0) {
    const ExprId first = mul(row, arena_.index(facts_.width(body_, value)));
    return parameter(value, add(first, index_of(column)));
  }
  const Place place{value, row, column.first, column.offset, column.high};
  if (const auto known = known_.find(place); known != known_.end()) return known->second;
  const ExprId result = compute(body_.nodes[static_cast<size_t>(producer)], value, row, column);
  known_.emplace(place, result);
  return result;
}

ExprId RowValues::compute(const Node& node, ValueId value, ExprId row, const Column& column) {
  const auto input = [&](size_t i) { return at(node.inputs[i], row, column); };
  switch (node.op) {
    case OpKind::kEmbedding: {
      const int64_t width = body_.values[node.inputs[1]].type.shape[1].factor();
      const ExprId id = at(node.inputs[0], row, {arena_.index(0), arena_.index(0)});
      return parameter(node.inputs[1], add(mul(id, arena_.index(width)), index_of(column)));
    }
    case OpKind::kPositions:
      return in_text(node.inputs[0], node.inputs[1], row);
    case OpKind::kAdd:
      return arena_.make(Op::kAdd, {input(0), input(1)});
    case OpKind::kMultiply:
      return arena_.make(Op::kMul, {input(0), input(1)});
    case OpKind::kActivate:
      return activation(std::get<ActivateAttributes>(node.attributes).kind, input(0));
    case OpKind::kLayerNorm:
    case OpKind::kRmsNorm:
      return norm(node, row, column);
    case OpKind::kLinear:
      return product(node, column);
    case OpKind::kRope:
      return rope(node, row, column);
    case OpKind::kLastRows: {
      const ExprId q_len = dim(ir::DimSymbol::kQLen);
      const ExprId last = sub(add(mul(row, q_len), q_len), arena_.index(1));
      return at(node.inputs[0], last, column);
    }
    case OpKind::kArgmax:
      return argmax(node, row);
    case OpKind::kSplit:
      return split(node, value, row, column);
    case OpKind::kView:
      return input(0);
    case OpKind::kKvWrite:
    case OpKind::kAttention:
    case OpKind::kFused:
      break;
  }
  assert(false && "study_body lets no such value be read");
  return 0;
}

// Silu and gelu as x * sigmoid and x * Phi: no cancellation for negative x.
ExprId RowValues::activation(Activation kind, ExprId x) {
  const auto times_sigmoid = [&](ExprId k) {
    const ExprId power = arena_.make(Op::kExp, {arena_.make(Op::kNeg, {k})});
    return arena_.make(Op::kDiv, {x, arena_.make(Op::kAdd, {arena_.number(1), power})});
  };
  const auto scaled = [&](double factor, ExprId y) {
    return arena_.make(Op::kMul, {arena_.number(factor), y});
  };
  switch (kind) {
    case Activation::kSilu:
      return times_sigmoid(x);
    case Activation::kGeluTanh: {  // 0.5 x (1 + tanh(u)) = x sigmoid(2u), u = sqrt(2/pi) (...)
      const ExprId square = arena_.make(Op::kMul, {x, x});
      const ExprId inner = arena_.make(Op::kAdd, {arena_.number(1), scaled(0.044715, square)});
      return times_sigmoid(scaled(1.5957691216057308, arena_.make(Op::kMul, {x, inner})));
    }
    case Activation::kGeluErf: {
      const ExprId tail = arena_.make(Op::kErfc, {scaled(-0.70710678118654752, x)});
      return arena_.make(Op::kMul, {scaled(0.5, x), tail});
    }
    case Activation::kRelu:
      return arena_.make(Op::kMax, {x, arena_.number(0)});
  }
  return x;
}

// The mean over the row of x, or of (x - centre)^2; without a centre rms_norm's, of x^2.
ExprId RowValues::mean(const Node& node, ExprId row, std::optional<ExprId> centre) {
  const bool squares = node.op == OpKind::kRmsNorm || centre;
  const auto key = std::tuple(node.inputs[0], row, centre, squares);
  if (const auto known = means_.find(key); known != means_.end()) return known->second;
  const int64_t width = facts_.width(body_, node.inputs[0]);
  const ir::VarId var = arena_.new_var();
  ExprId value = at(node.inputs[0], row, {arena_.index(0), arena_.var(var)});
  if (centre) value = arena_.make(Op::kSub, {value, *centre});
  if (squares) value = arena_.make(Op::kMul, {value, value});
  const ir::VarId result = arena_.new_var();
  setup_.emplace_back().node =
      ir::Reduce{result, ir::ReduceOp::kSum, var, arena_.index(width), value};
  const ExprId scale = arena_.number(1.0 / static_cast<double>(width));
  return means_[key] = arena_.make(Op::kMul, {arena_.var(result), scale});
}

ExprId RowValues::norm(const Node& node, ExprId row, const Column& column) {
  const auto per_column = [&](size_t i) { return parameter(node.inputs[i], index_of(column)); };
  std::optional<ExprId> centre;
  if (node.op == OpKind::kLayerNorm) centre = mean(node, row, std::nullopt);
  const double eps = std::get<NormAttributes>(node.attributes).eps;
  const ExprId variance = arena_.make(Op::kAdd, {mean(node, row, centre), arena_.number(eps)});
  const ExprId scale =
      arena_.make(Op::kDiv, {arena_.number(1), arena_.make(Op::kSqrt, {variance})});
  ExprId x = at(node.inputs[0], row, column);
  if (centre) x = arena_.make(Op::kSub, {x, *centre});
  x = arena_.make(Op::kMul, {arena_.make(Op::kMul, {x, scale}), per_column(1)});
  return node.inputs.size() == 3 ? arena_.make(Op::kAdd, {x, per_column(2)}) : x;
}

ExprId RowValues::argmax(const Node& node, ExprId row) {
  const auto key = std::pair(node.outputs[0], row);
  if (const auto known = argmaxes_.find(key); known != argmaxes_.end()) return known->second;
  const int64_t width = facts_.width(body_, node.inputs[0]);
  const ir::VarId var = arena_.new_var();
  const ExprId value = at(node.inputs[0], row, {arena_.index(0), arena_.var(var)});
  const ir::VarId result = arena_.new_var();
  setup_.emplace_back().node =
      ir::Reduce{result, ir::ReduceOp::kArgmax, var, arena_.index(width), value};
  return argmaxes_[key] = arena_.var(result);
}

ExprId RowValues::rope(const Node& node, ExprId row, const Column& column) {
  assert(column.half > 0);
  Column low = column, high = column;
  low.high = false;
  high.high = true;
  const ExprId position = in_text(node.inputs[1], node.inputs[2], row);
  const ExprId at_pair = add(mul(position, arena_.index(column.half)), column.offset);
  const ExprId cos = parameter(node.inputs[3], at_pair);
  const ExprId sin = parameter(node.inputs[4], at_pair);
  const ExprId x = at(node.inputs[0], row, column);
  const ExprId other = at(node.inputs[0], row, column.high ? low : high);
  return arena_.make(column.high ? Op::kAdd : Op::kSub,
                     {arena_.make(Op::kMul, {x, cos}), arena_.make(Op::kMul, {other, sin})});
}

ExprId RowValues::product(const Node& node, const Column& column) {
  assert(tile_);
  const ExprId index = index_of(column);
  ExprId at_tile = sub(index, tile_->first);
  const bool second = tile_->second_at && arena_.constant_term(at_tile) >= *tile_->second_at;
  if (tile_->rows) {
    at_tile = second || column.high ? add(place_, arena_.index(1)) : place_;
  } else if (second) {
    at_tile = add(at_tile, arena_.index(tile_->tile / 2 - *tile_->second_at));
  }
  const ExprId sum = arena_.load(tile_->buffer, at_tile);
  if (node.inputs.size() < 3) return sum;
  return arena_.make(Op::kAdd, {sum, parameter(node.inputs[2], index)});
}

ExprId RowValues::split(const Node& node, ValueId value, ExprId row, const Column& column) {
  const auto& widths = std::get<SplitAttributes>(node.attributes).widths;
  int64_t before = 0;
  for (size_t i = 0; node.outputs[i] != value; ++i) before += widths[i];
  Column shifted = column;
  shifted.first = add(column.first, arena_.index(before));
  return at(node.inputs[0], row, shifted);
}

ExprId RowValues::in_cache(ValueId lengths, ExprId row) {
  const ExprId q_len = dim(ir::DimSymbol::kQLen);
  const ExprId length = parameter(lengths, arena_.make(Op::kIndexDiv, {row, q_len}));
  return add(length, arena_.make(Op::kIndexMod, {row, q_len}));
}

ExprId RowValues::in_text(ValueId lengths, ValueId pad, ExprId row) {
  const ExprId q_len = dim(ir::DimSymbol::kQLen);
  const ExprId first = parameter(pad, arena_.make(Op::kIndexDiv, {row, q_len}));
  const ExprId position = in_cache(lengths, row);
  const ExprId is_padding = arena_.make(Op::kIndexLess, {position, first});
  return arena_.make(Op::kSelect, {is_padding, arena_.index(0), sub(position, first)});
}

// [rows, kv_heads, capacity, head_dim] at the row's batch, or its slot, the column's head, the
// row's position.
ExprId RowValues::cache_index(ValueId cache, ExprId row, const Column& column) {
  const Node& write = body_.nodes[static_cast<size_t>(facts_.producers[cache])];
  const SymbolicShape& shape = body_.values[cache].type.shape;
  ExprId cache_row = arena_.make(Op::kIndexDiv, {row, dim(ir::DimSymbol::kQLen)});
  if (write.inputs.size() > 3) cache_row = parameter(write.inputs[3], cache_row);
  const ExprId head_dim = arena_.index(shape[3].factor());
  const ExprId head = arena_.make(Op::kIndexDiv, {column.first, head_dim});
  const ExprId plane = add(mul(cache_row, arena_.index(shape[1].factor())), head);
  const ExprId vector =
      add(mul(plane, dim(ir::DimSymbol::kCapacity)), in_cache(write.inputs[2], row));
  Column in_head = column;
  in_head.first = arena_.index(0);
  return add(mul(vector, head_dim), index_of(in_head));
}

}  // namespace assay::engine
