// A kernel as data: made of a node by lowering, printed by the targets, called by the executor.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "engine/codegen/ir.h"
#include "engine/graph/graph.h"
#include "engine/weight_format.h"

namespace assay::engine {

// Sizes that a kernel may take as constants; absent: known at run time (KernelArgs::dims).
struct Specialization {
  std::optional<int64_t> batch, q_len, kv_len;
  std::optional<int64_t> capacity;  // positions that a cache's head stride has room for
  friend bool operator==(const Specialization&, const Specialization&) = default;
};

// Buffers don't overlap. A cache that is written is one buffer, whose value is the cache as it was
// before.
struct KernelBuffer {
  std::string name;  // in the printed source
  DType dtype = DType::kF32;
  bool writable = false;
  ValueId value = 0;    // of the graph, bound here by the executor
  bool steady = false;  // no kernel of a step writes it: a weight, a table, an input
  // The weight lies in its blocks, laid out for the target. A library multiplies one in panels. In
  // rows `dtype` is the type of a product's codes, and of the values that other kernels decode.
  struct Blocks {
    WeightFormat format = WeightFormat::kQ8_0;
    int64_t row_values = 0;
    bool ordered = false;  // stored inputs have another order: TensorView::input_order
  };
  std::optional<Blocks> blocks = {};
};

// Row kernels: `body` runs once for each of `rows` rows, in any order. [rows, width] values are
// indexed row * width + column.
struct RowsKernel {
  Dim rows = Dim(1);
  ir::VarId row = 0;
  ir::Block body;
};

// A product x . W with the nodes fused around it. For `rows` rows:
//   prologue (may be empty) stores the row's inputs into buffer `x` at [0, inputs), reading others;
//   the product of x with the packed weight is computed a tile of columns at a time, then
//   the epilogue of the segment that the tile belongs to runs for each row of the tile, with the
//   products in buffer `tile` at [0, packing.tile), and stores the fused node's outputs.
// For a weight packed in rows, an epilogue is for any range of a segment's packed columns, even at
// both ends, with their products in `tile`.
// `x` without a prologue is a real buffer [rows, inputs]. `tile` is always the kernel's own.
// Matrix-vector form: blocks of up to kProductRows rows, each block reading the weight anew.
constexpr int64_t kProductRows = 8;
// A prologue that is an RMS norm alone, x * weight / sqrt(mean(x^2) + eps), so that a target may
// apply the root to the products.
struct RmsPrologue {
  ir::BufferId x = 0;       // fp32 [rows, inputs]
  ir::ExprId x_row = 0;     // of `x`, by the row at hand
  ir::BufferId weight = 0;  // [inputs]
  double eps = 0;
};
struct ProductKernel {
  Dim rows = Dim(1);
  int64_t inputs = 0;
  Packing packing;
  ir::BufferId weight = 0;
  ir::BufferId x = 0;
  ir::BufferId tile = 0;
  ir::VarId row = 0;
  // Offset of the tile, or in rows of the range, from the first column of its segment, in packed
  // columns, or in pairs of them if they are interleaved. `column_count` is the range's length in
  // the same unit, for rows alone.
  ir::VarId first_column = 0;
  ir::VarId column_count = 0;
  bool fp8 = false;        // LinearAttributes::fp8
  bool by_itself = false;  // even where a library would take less time
  // A target may write the kernel's one output in e4m3, for the kernel behind this one, which alone
  // reads it.
  bool codes_output = false;
  // Likewise, in the order in which the tiles of the kernel behind read rows; this kernel's rows
  // come so.
  bool tiled_output = false, tiled_input = false;
  bool has_prologue = false;
  std::optional<RmsPrologue> norm = {};  // the same computation as `prologue`
  ir::Block prologue;
  std::vector<ir::Block> epilogues;  // one a segment; interleaved: one in all
};

// Causal attention over a cache, as OpLibrary::attention. Over one of 16 bits, queries and weights
// may be rounded to its type.
struct AttentionKernel {
  int64_t heads = 0, kv_heads = 0, head_dim = 0;
  ir::BufferId q = 0, keys = 0, values = 0, lengths = 0, pad = 0, out = 0;
  std::optional<ir::BufferId> slots = {};  // absent: the caches' rows are the batch's
};

struct Kernel {
  std::string label;  // for people: "linear rope kv_write"
  Specialization dims;
  // Batch and q_len of the runs that it is printed for, where they aren't constants: a target may
  // choose a form by them, so that a symbol costs no speed. The text is right for those runs alone.
  // Absent: runs of any size.
  Specialization run_sizes = {};
  // The GPU that it is printed for, "sm_90a", likewise; empty: any.
  std::string target = {};
  // Products of its step have rings in a multiprocessor's memory, one row each, likewise.
  bool beside_rings = false;
  ir::Arena exprs;
  std::vector<KernelBuffer> buffers;  // local ones (x of a prologue, tile) last: no binding
  size_t bound_buffers = 0;           // how many of them the executor binds
  std::variant<RowsKernel, ProductKernel, AttentionKernel> body;
};

}  // namespace assay::engine
