// Outputs whose loops have the same shape share one.
#include "engine/codegen/lower/stores.h"

#include <map>
#include <utility>

namespace assay::engine {
namespace {

using ir::ExprId;
using ir::Op;

enum class Loops { kColumns, kHeads, kHalfHeads };

struct Builder {
  const Graph& body;
  const BodyFacts& facts;
  ExprId row;
  RowValues& values;
  ir::Arena& arena;

  const Node* kv_write(ValueId output) const {
    const int64_t producer = facts.producers[output];
    if (producer < 0) return nullptr;
    const Node& node = body.nodes[static_cast<size_t>(producer)];
    return node.op == OpKind::kKvWrite ? &node : nullptr;
  }

  Loops loops_of(ValueId output) const {
    if (facts.turned[output]) return Loops::kHalfHeads;
    return kv_write(output) != nullptr ? Loops::kHeads : Loops::kColumns;
  }

  ir::Stmt store(const Target& target, const Column& column) const {
    if (const Node* write = kv_write(target.output)) {
      return {ir::Store{target.buffer, values.cache_index(target.output, row, column),
                        values.at(write->inputs[1], row, column)}};
    }
    const ExprId width = arena.index(facts.width(body, target.output));
    const ExprId first = arena.make(Op::kIndexMul, {row, width});
    return {ir::Store{target.buffer, arena.make(Op::kIndexAdd, {first, values.index_of(column)}),
                      values.at(target.output, row, column)}};
  }

  void by_columns(const std::vector<Target>& targets, const ColumnRange& range,
                  ir::Block& block) const {
    const bool single = arena.constant(range.count) == 1;
    const ir::VarId var = arena.new_var();
    ir::Loop loop{var, range.count, {}};
    const Column column{range.first, single ? arena.index(0) : arena.var(var)};
    if (in_rows()) {
      const int64_t columns = values.tile()->second_at ? 2 : 1;
      values.set_place(arena.make(Op::kIndexMul, {column.offset, arena.index(columns)}));
    }
    for (const Target& target : targets) {
      (single ? block : loop.body).push_back(store(target, column));
    }
    if (!single) block.push_back({std::move(loop)});
  }

  bool in_rows() const { return values.tile() && values.tile()->rows; }

  // Packed in rows, heads begin and end anywhere: a column's head is computed.
  void by_head_columns(const std::vector<Target>& targets, const ColumnRange& range,
                       ir::Block& block) const {
    const int64_t half = values.tile()->half_head;
    const ExprId abreast = arena.index(half > 0 ? 2 : 1);
    const ExprId in_order = arena.index(half > 0 ? half : facts.head_dim);
    const ir::VarId var = arena.new_var();
    const ExprId at = arena.make(
        Op::kIndexAdd, {arena.make(Op::kIndexDiv, {range.first, abreast}), arena.var(var)});
    const ExprId head = arena.make(Op::kIndexDiv, {at, in_order});
    Column column{arena.make(Op::kIndexMul, {head, arena.index(facts.head_dim)}),
                  arena.make(Op::kIndexMod, {at, in_order}), half};
    values.set_place(arena.make(Op::kIndexMul, {arena.var(var), abreast}));
    ir::Loop loop{var, arena.make(Op::kIndexDiv, {range.count, abreast}), {}};
    for (const Target& target : targets) {
      column.high = false;
      loop.body.push_back(store(target, column));
      column.high = true;
      if (half > 0) loop.body.push_back(store(target, column));
    }
    block.push_back({std::move(loop)});
  }

  void by_heads(const std::vector<Target>& targets, bool halves, const ColumnRange& range,
                ir::Block& block) const {
    const ExprId head_dim = arena.index(facts.head_dim);
    const ir::VarId head = arena.new_var(), at = arena.new_var();
    const int64_t half = halves ? facts.head_dim / 2 : 0;
    const ExprId in_range = arena.make(Op::kIndexMul, {arena.var(head), head_dim});
    Column column{arena.make(Op::kIndexAdd, {range.first, in_range}), arena.var(at), half};
    ir::Loop inner{at, arena.index(halves ? half : facts.head_dim), {}};
    for (const Target& target : targets) {
      column.high = false;
      inner.body.push_back(store(target, column));
      column.high = true;
      if (halves) inner.body.push_back(store(target, column));
    }
    const ExprId heads = arena.make(Op::kIndexDiv, {range.count, head_dim});
    block.push_back({ir::Loop{head, heads, {ir::Stmt{std::move(inner)}}}});
  }
};

}  // namespace

void append_stores(const Graph& body, const BodyFacts& facts, const std::vector<Target>& targets,
                   ir::ExprId row, const ColumnRange& columns, RowValues& values, ir::Arena& arena,
                   ir::Block& block) {
  const Builder builder{body, facts, row, values, arena};
  std::map<Loops, std::vector<Target>> by_loops;
  if (builder.in_rows() && (values.tile()->half_head > 0 || facts.head_dim > 0)) {
    return builder.by_head_columns(targets, columns, block);
  }
  for (const Target& target : targets) by_loops[builder.loops_of(target.output)].push_back(target);
  for (const auto& [loops, group] : by_loops) {
    if (loops == Loops::kColumns) {
      builder.by_columns(group, columns, block);
    } else {
      builder.by_heads(group, loops == Loops::kHalfHeads, columns, block);
    }
  }
}

}  // namespace assay::engine
