// The values of a body as expressions of a row and a column: everything between the parameters and
// a store is inlined.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "engine/codegen/kernel.h"
#include "engine/codegen/lower/body.h"

namespace assay::engine {

// A column of a value, and its place in its head if the loops go by heads: `offset` is the column
// in the head, or in its half if `half` > 0.
struct Column {
  ir::ExprId first = 0;  // the head's first column; without heads, added to the offset
  ir::ExprId offset = 0;
  int64_t half = 0;
  bool high = false;  // the second half
};

// The columns of a product that are at hand in a tile.
struct TileColumns {
  ir::BufferId buffer = 0;
  ir::ExprId first = 0;              // the product's column at the tile's first
  std::optional<int64_t> second_at;  // interleaved: the product's column where the second part is
  int64_t tile = 0;
  // Packed in rows: set_place() says where in the tile the loops are.
  bool rows = false;
  int64_t half_head = 0;  // as Packing has it
};

class RowValues {
 public:
  // Parameter i is buffer i of `kernel`, whose arena it fills.
  RowValues(const Graph& body, const BodyFacts& facts, Kernel& kernel)
      : body_(body), facts_(facts), kernel_(kernel), arena_(kernel.exprs) {}

  // fp32, or an index for int32 values. Row reductions that it needs are appended to `setup`, once.
  ir::ExprId at(ValueId value, ir::ExprId row, const Column& column);
  // The element of a cache that the kv_write with this output stores the column to.
  ir::ExprId cache_index(ValueId cache, ir::ExprId row, const Column& column);

  ir::ExprId index_of(const Column& column);
  ir::ExprId dim(ir::DimSymbol symbol);  // a constant if the kernel is specialised on it

  void set_tile(const TileColumns& tile) { tile_ = tile; }
  const std::optional<TileColumns>& tile() const { return tile_; }
  // For a tile in rows: the place of the column, or the first of two that alternate, from here on.
  void set_place(ir::ExprId place) {
    place_ = place;
    known_.clear();
  }
  ir::Block take_setup();

 private:
  ir::ExprId compute(const Node& node, ValueId value, ir::ExprId row, const Column& column);
  ir::ExprId norm(const Node& node, ir::ExprId row, const Column& column);
  ir::ExprId mean(const Node& node, ir::ExprId row, std::optional<ir::ExprId> centre);
  ir::ExprId argmax(const Node& node, ir::ExprId row);
  ir::ExprId activation(Activation kind, ir::ExprId x);
  ir::ExprId rope(const Node& node, ir::ExprId row, const Column& column);
  ir::ExprId product(const Node& node, const Column& column);
  ir::ExprId split(const Node& node, ValueId value, ir::ExprId row, const Column& column);
  // TokenPlaces' in_cache and in_text, of the token that a row of [batch * q_len] is.
  ir::ExprId in_cache(ValueId lengths, ir::ExprId row);
  ir::ExprId in_text(ValueId lengths, ValueId pad, ir::ExprId row);

  ir::ExprId add(ir::ExprId a, ir::ExprId b) { return arena_.make(ir::Op::kIndexAdd, {a, b}); }
  ir::ExprId sub(ir::ExprId a, ir::ExprId b) { return arena_.make(ir::Op::kIndexSub, {a, b}); }
  ir::ExprId mul(ir::ExprId a, ir::ExprId b) { return arena_.make(ir::Op::kIndexMul, {a, b}); }
  ir::ExprId parameter(ValueId value, ir::ExprId index);

  using Place = std::tuple<ValueId, ir::ExprId, ir::ExprId, ir::ExprId, bool>;
  const Graph& body_;
  const BodyFacts& facts_;
  Kernel& kernel_;
  ir::Arena& arena_;
  std::optional<TileColumns> tile_;
  ir::ExprId place_ = 0;
  ir::Block setup_;
  std::map<Place, ir::ExprId> known_;
  // Means in `setup_` by the value, its row, the centre subtracted, and if squares were summed.
  std::map<std::tuple<ValueId, ir::ExprId, std::optional<ir::ExprId>, bool>, ir::ExprId> means_;
  std::map<std::pair<ValueId, ir::ExprId>, ir::ExprId> argmaxes_;
};

}  // namespace assay::engine
