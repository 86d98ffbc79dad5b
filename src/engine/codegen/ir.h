// The loop IR: a generated kernel's computation for one row, target-neutral. Expressions are
// hash-consed nodes of an arena; statements are loops whose iterations don't depend on each other,
// reductions, and stores.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <variant>
#include <vector>

namespace assay::engine::ir {

using ExprId = uint32_t;    // index into Arena::exprs
using VarId = uint32_t;     // of loops, reductions and the row at hand
using BufferId = uint32_t;  // index into a kernel's buffers

enum class Op {
  // Leaves
  kFloat,  // fp32 constant: value
  kIndex,  // integer constant: value
  kVar,    // a variable: symbol = VarId
  kDim,    // batch | q_len | kv_len | capacity: symbol = DimSymbol
  kLoad,   // buffer symbol at index args[0]; fp16 and bf16 widen to fp32, int32 to an index
  // fp32
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMax,  // the first argument if one is NaN
  kNeg,
  kExp,  // may saturate where it would overflow or be denormal
  kSqrt,
  kErfc,  // to the relative precision of fp32, for large arguments too
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

// Owns the expressions of one kernel; the same expression twice is one node. Index arithmetic is
// kept as a sum of terms, each times a constant, so that equal sums are the same node: a + b - a
// is b, and (8 * h + d) / 8 is h + d / 8.
class Arena {
 public:
  ExprId number(double value);
  ExprId index(int64_t value);
  ExprId var(VarId id);
  ExprId dim(DimSymbol symbol);
  ExprId load(BufferId buffer, ExprId index);
  ExprId make(Op op, std::vector<ExprId> args);  // any but the leaves
  VarId new_var() { return vars_++; }

  // The constant that an index stands for, if it is one.
  std::optional<int64_t> constant(ExprId id) const;
  // The constant among the terms of an index that is a sum: 3 of v0 + 3.
  int64_t constant_term(ExprId id) const;

  const Expr& operator[](ExprId id) const { return exprs_[id]; }
  size_t size() const { return exprs_.size(); }

 private:
  struct Sum {  // of terms, by the expression that the factor stands before
    std::map<ExprId, int64_t> terms;
    int64_t constant = 0;
  };
  ExprId intern(Expr expr);
  Sum sum_of(ExprId id) const;
  ExprId from_sum(const Sum& sum);
  ExprId multiply(ExprId a, ExprId b);
  ExprId divide(Op op, ExprId a, ExprId b);
  ExprId combine(ExprId a, ExprId b, int64_t sign);

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
// body for var in [0, extent). A body of stores alone is for vector lanes on the CPU and threads of
// a block on CUDA; no iteration reads an element that another one, or the row before it, stored.
struct Loop {
  VarId var;
  ExprId extent;
  Block body;
};
enum class ReduceOp { kSum, kArgmax };  // argmax: the first of the largest; NaN is largest
// result = op over var in [0, extent) of value, known to all that follows in the block.
struct Reduce {
  VarId result;
  ReduceOp op;
  VarId var;
  ExprId extent;
  ExprId value;
};
struct Stmt {
  std::variant<Store, Loop, Reduce> node;
};

}  // namespace assay::engine::ir
