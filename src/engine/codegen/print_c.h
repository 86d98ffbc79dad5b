// Prints the loop IR in the C that CPU and GPU have in common; a CTarget has the differences.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/codegen/kernel.h"

namespace assay::engine {

// A reduction to be printed: `result` becomes a constant, float or index, of all that follows.
struct ReduceText {
  ir::ReduceOp op = ir::ReduceOp::kSum;
  std::string result, var, extent;
  std::string body;   // whole lines, indented by `indent` + 1 levels, before the value
  std::string value;  // an expression of `var`
  int indent = 0;
};

// A loop of stores over a constant extent, its values apart from its stores: `values` are whole
// lines that put the value of store i into VAR_kept<i>[VAR_at], and `stores` those that store it
// from there, both indented by `indent` + 2 levels and for one value of `var`.
struct BatchText {
  std::string var;
  int64_t extent = 0;
  std::vector<std::string_view> types;  // of the values, by store
  std::string values, stores;
  int indent = 0;
};

// A target's words. Sources see the functions that it names in a prelude of its own.
struct CTarget {
  std::string_view exp, sqrt, erfc;  // float -> float
  std::string_view divide = {};      // (float, float) -> float; the sign, if it is empty
  std::string_view bf16, f16;        // element as stored -> float
  // Float -> element, to the nearest. Empty if kernels store no such elements.
  std::string_view to_bf16 = {}, to_f16 = {};
  // The loop's head, up to its opening brace. Innermost loops hold stores alone.
  std::string (*loop)(const std::string& var, const std::string& extent, bool innermost,
                      int indent) = nullptr;
  std::string (*reduce)(const ReduceText& reduce) = nullptr;
  // Iterations of an outermost loop of stores whose values are asked for before any is stored,
  // given the loop's extent and the elements that an iteration reads; 1: the loop as above. Null:
  // always 1.
  int64_t (*batch_size)(int64_t extent, int64_t reads) = nullptr;
  std::string (*batch)(const BatchText& batch, int64_t size) = nullptr;  // the loop, whole
};

// The type of a buffer's elements: "float", "unsigned short" (bf16), "_Float16" unless the target
// has another name for it, "int".
std::string_view element_type(DType dtype, std::string_view f16_type = "_Float16");

// One prints one function's body: it remembers which variables are defined. Names: buffers by
// their own, variables v0, v1, ..., values computed once t0, t1, ..., dims batch, q_len, kv_len
// and capacity.
class CPrinter {
 public:
  CPrinter(const Kernel& kernel, const CTarget& target);

  void define(ir::VarId index) { defined_.insert(index); }  // a parameter of the function
  // Lines of a block, each indented by two spaces a level. A value that doesn't change in a loop is
  // computed before it, one that is used twice once.
  std::string block(const ir::Block& block, int indent);
  std::string expression(ir::ExprId id) const { return text(id); }  // of defined variables

  static std::string var_name(ir::VarId id);

 private:
  using Uses = std::map<ir::ExprId, int>;
  std::string statement(const ir::Store& store, int indent);
  std::string statement(const ir::Loop& loop, int indent);
  std::string statement(const ir::Reduce& reduce, int indent);
  int64_t batch_size(const ir::Loop& loop, int indent) const;
  std::string batch(const ir::Loop& loop, int64_t size, int indent);
  std::string stored(const KernelBuffer& buffer, std::string value) const;
  std::string hoist(const ir::Block& block, int indent);
  std::string hoist(ir::ExprId root, int indent);
  std::string name_shared(const std::vector<ir::ExprId>& roots, int indent);
  std::string name(ir::ExprId id, int indent);
  std::string text(ir::ExprId id) const;
  std::string operation(const ir::Expr& expr) const;
  bool is_leaf(ir::ExprId id) const;
  bool is_available(ir::ExprId id);
  bool is_float(ir::ExprId id) const;
  void count_uses(ir::ExprId id, Uses& uses, std::vector<ir::ExprId>& order) const;

  const Kernel& kernel_;
  const CTarget& target_;
  std::set<ir::VarId> defined_;
  std::set<ir::VarId> floats_;  // results of sums
  std::map<ir::ExprId, std::string> names_;
  int temporaries_ = 0;
};

// The first lines of a function: batch, q_len, kv_len and capacity as constants or from the
// kernel's arguments, which `args` ("args->", "args.") leads to, and each bound buffer by its name.
// `qualifier`: of the buffers' pointers, " __restrict__" or nothing.
std::string argument_text(const Kernel& kernel, std::string_view args, std::string_view f16_type,
                          std::string_view qualifier);

// A product of a constant and dims: "3 * batch * q_len".
std::string dim_text(const Dim& dim);

// The epilogues of a product's segments, for the tile whose number is `index`, with its row of
// products in the buffer `tile`. The row and `index` are parameters of the function.
std::string print_epilogues(const Kernel& kernel, const ProductKernel& product,
                            const CTarget& target);

}  // namespace assay::engine
