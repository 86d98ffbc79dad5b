// The loops that store a body's outputs, over all columns of a row or those of a tile.
#pragma once

#include <vector>

#include "engine/codegen/lower/row_values.h"

namespace assay::engine {

// The destination of an output.
struct Target {
  ValueId output = 0;
  ir::BufferId buffer = 0;  // of a written cache: the cache's own
};

// The columns [first, first + count) of outputs that have them.
struct ColumnRange {
  ir::ExprId first = 0;
  ir::ExprId count = 0;
};

// Appends loops to `block`: by half heads for outputs that rope turned, by heads for those that go
// into a cache, else column by column. Reductions that they need go into the setup of `values`.
void append_stores(const Graph& body, const BodyFacts& facts, const std::vector<Target>& targets,
                   ir::ExprId row, const ColumnRange& columns, RowValues& values, ir::Arena& arena,
                   ir::Block& block);

}  // namespace assay::engine
