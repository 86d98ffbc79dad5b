// The loop IR: what a generated kernel computes for one row, target-neutral. Expressions are
// hash-consed nodes of an arena; statements are loops whose iterations don't depend on each other,
// reductions, and stores.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "engine/graph/dim.h"
#include "engine/tensor.h"

namespace assay::engine::ir {

using ExprId = uint32_t;    // index into Arena::exprs
using VarId = uint32_t;     // of loops, reductions and the row at hand
using BufferId = uint32_t;  // index into a kernel's buffers

enum class Op {
  // Leaves
  kFloat,  // fp32 constant: value
  kIndex,  // integer constant: value
  kVar,    // a variable: symbol = VarId
  kDim,    // batch | q_len | kv_len | capacity: symbol = DimSymbol; a constant where specialised
  kLoad,   // buffer symbol at index args[0]; fp16 and bf16 widen to fp32, int32 to an index
  // fp32
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMax,
  kNeg,
  kExp,
  kTanh,
  kSqrt,
  kErf,
  // Index arithmetic; division and remainder of values >= 0
  kIndexAdd,
  kIndexSub,
  kIndexMul,
  kIndexDiv,
  kIndexMod,
  // Choice: args = condition, then, else. Conditions compare indices.
  kIndexLess,
  kSelect,
};
enum class DimSymbol : uint32_t { kBatch, kQLen, kKvLen, kCapacity };

struct Expr {
  Op op = Op::kFloat;
  double value = 0;
  uint32_t symbol = 0;
  std::vector<ExprId> args;
};

// Owns the expressions of one kernel; the same expression twice is one node. Folds constants of
// index arithmetic and the identities x + 0, x * 1, x * 0.
class Arena {
 public:
  ExprId number(double value);
  ExprId index(int64_t value);
  ExprId var(VarId id);
  ExprId dim(DimSymbol symbol);
  ExprId dim(const Dim& monomial);  // its product of symbols
  ExprId load(BufferId buffer, ExprId index);
  ExprId make(Op op, std::vector<ExprId> args);
  VarId new_var() { return vars_++; }

  const Expr& operator[](ExprId id) const { return exprs_[id]; }
  size_t size() const { return exprs_.size(); }

 private:
  ExprId intern(Expr expr);
  std::vector<Expr> exprs_;
  std::map<std::tuple<Op, double, uint32_t, std::vector<ExprId>>, ExprId> ids_;
  VarId vars_ = 0;
};

struct Stmt;
using Block = std::vector<Stmt>;

struct Store {
  BufferId buffer;
  ExprId index;
  ExprId value;
};
// body for var in [0, extent): vector lanes on the CPU, threads of a block on CUDA.
struct Loop {
  VarId var;
  ExprId extent;
  Block body;
};
enum class ReduceOp { kSum, kMax, kArgmax };  // argmax: the first of the largest; NaN is largest
// result = op over var in [0, extent) of value, known to all that follows in the block.
struct Reduce {
  VarId result;
  ReduceOp op;
  VarId var;
  ExprId extent;
  ExprId value;
};
struct Let {  // a scalar of the row, computed once
  VarId var;
  ExprId value;
};
struct Stmt {
  std::variant<Store, Loop, Reduce, Let> node;
};

}  // namespace assay::engine::ir
