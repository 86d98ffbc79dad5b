// Index arithmetic tells which elements of a unit are neighbours: their loads and stores become
// vectors, and the values between them loops over arrays that the compiler keeps in registers.
#include "engine/codegen/cuda/unit_epilogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <vector>

#include "engine/codegen/cuda/cuda_target.h"
#include "engine/codegen/cuda/print_cuda.h"

namespace assay::engine {
namespace {

using ir::ExprId;
using ir::Op;

constexpr int64_t kShortestVector = 4;  // elements of 16 bits: 8 bytes

// An index within a unit: steps * the loop's variable + some multiple of `multiple`, where 0 has
// only itself as a multiple.
struct InUnit {
  int64_t steps = 0, multiple = 1;
};

// The loop of one segment's epilogue over a unit.
struct UnitLoop {
  const ir::Loop* loop = nullptr;
  std::vector<const ir::Store*> stores;
  int64_t begin = 0, end = 0;  // of the segment, in packed columns
  int64_t iterations = 0;      // for a unit; each stores one element to every output
};

class Indices {
 public:
  Indices(const Kernel& kernel, const ProductKernel& product, const UnitLoop& loop)
      : kernel_(kernel),
        product_(product),
        var_(loop.loop->var),
        iterations_(loop.iterations),
        first_multiple_(kUnitColumns / (product.packing.interleaved ? 2 : 1)) {}

  // True if the elements of all iterations are neighbours, and the first begins a vector of them.
  bool is_vector(ExprId index) const {
    const auto place = of(index);
    return place && place->steps == 1 && place->multiple % iterations_ == 0;
  }
  bool is_one(ExprId index) const {
    const auto place = of(index);
    return place && place->steps == 0;
  }

 private:
  // Absent: not known.
  std::optional<InUnit> of(ExprId id) const {
    const ir::Expr& expr = kernel_.exprs[id];
    switch (expr.op) {
      case Op::kIndex:
        return InUnit{0, static_cast<int64_t>(expr.value)};
      case Op::kVar:
        if (expr.symbol == var_) return InUnit{1, 0};
        return InUnit{0, expr.symbol == product_.first_column ? first_multiple_ : 1};
      case Op::kDim:
        return InUnit{};
      case Op::kLoad:
        return is_one(expr.args[0]) ? std::optional(InUnit{}) : std::nullopt;
      case Op::kIndexAdd:
      case Op::kIndexSub:
        return sum(expr);
      case Op::kIndexMul:
        return times(expr);
      case Op::kIndexDiv:
      case Op::kIndexMod:
        return divided(expr);
      case Op::kIndexLess:
      case Op::kSelect:
        for (const ExprId arg : expr.args) {
          if (!is_one(arg)) return std::nullopt;
        }
        return InUnit{};
      default:
        return std::nullopt;
    }
  }

  std::optional<InUnit> sum(const ir::Expr& expr) const {
    const auto a = of(expr.args[0]), b = of(expr.args[1]);
    if (!a || !b) return std::nullopt;
    const int64_t steps = expr.op == Op::kIndexAdd ? a->steps + b->steps : a->steps - b->steps;
    return InUnit{steps, std::gcd(a->multiple, b->multiple)};
  }

  std::optional<InUnit> times(const ir::Expr& expr) const {
    const auto a = of(expr.args[0]), b = of(expr.args[1]);
    if (!a || !b) return std::nullopt;
    for (const auto& [factor, other] : {std::pair(expr.args[0], *b), {expr.args[1], *a}}) {
      const auto constant = kernel_.exprs.constant(factor);
      if (constant) return InUnit{other.steps * *constant, other.multiple * *constant};
    }
    if (a->steps != 0 || b->steps != 0) return std::nullopt;
    return InUnit{0, std::gcd(a->multiple, iterations_) * std::gcd(b->multiple, iterations_)};
  }

  // A vector lies within one multiple of a divisor that it divides.
  std::optional<InUnit> divided(const ir::Expr& expr) const {
    const auto a = of(expr.args[0]);
    const auto divisor = kernel_.exprs.constant(expr.args[1]);
    if (!a) return std::nullopt;
    if (!divisor) {
      return a->steps == 0 && is_one(expr.args[1]) ? std::optional(InUnit{}) : std::nullopt;
    }
    const bool within = *divisor % iterations_ == 0 && a->multiple % iterations_ == 0;
    if (a->steps != 0 && (a->steps != 1 || !within)) return std::nullopt;
    if (expr.op == Op::kIndexMod) return InUnit{a->steps, std::gcd(a->multiple, *divisor)};
    return InUnit{0, a->multiple % *divisor == 0 ? a->multiple / *divisor : 1};
  }

  const Kernel& kernel_;
  const ProductKernel& product_;
  ir::VarId var_;
  int64_t iterations_, first_multiple_;
};

bool is_unit_type(const Kernel& kernel, const ProductKernel& product, ir::BufferId buffer) {
  const DType type = kernel.buffers[buffer].dtype;
  return type == DType::kF32 || type == kernel.buffers[product.weight].dtype;
}

// True if every load of the value is of products, of one element for the whole unit, or a vector.
bool loads_fit(const Kernel& kernel, const ProductKernel& product, const Indices& indices,
               ExprId id) {
  const ir::Expr& expr = kernel.exprs[id];
  if (expr.op == Op::kLoad) {
    return expr.symbol == product.tile || indices.is_one(expr.args[0]) ||
           (is_unit_type(kernel, product, expr.symbol) && indices.is_vector(expr.args[0]));
  }
  for (const ExprId arg : expr.args) {
    if (!loads_fit(kernel, product, indices, arg)) return false;
  }
  return true;
}

// Iterations of the loop over a unit: as many as columns, or pairs of them, in the unit that its
// extent counts.
std::optional<int64_t> iterations_of(const Kernel& kernel, const ProductKernel& product,
                                     ExprId extent) {
  const int64_t count = kUnitColumns / (product.packing.interleaved ? 2 : 1);
  const auto is_count = [&](ExprId id) {
    return kernel.exprs[id].op == Op::kVar && kernel.exprs[id].symbol == product.column_count;
  };
  if (is_count(extent)) return count;
  const ir::Expr& expr = kernel.exprs[extent];
  if (expr.op != Op::kIndexDiv || !is_count(expr.args[0])) return std::nullopt;
  const auto divisor = kernel.exprs.constant(expr.args[1]);
  return divisor ? std::optional(count / *divisor) : std::nullopt;
}

std::optional<UnitLoop> unit_loop(const Kernel& kernel, const ProductKernel& product,
                                  size_t segment, int64_t begin) {
  const Packing& packing = product.packing;
  const ir::Block& block = product.epilogues[segment];
  const int64_t columns = packing.segments[segment] * (packing.interleaved ? 2 : 1);
  if (columns % packing.tile != 0 || block.size() != 1) return std::nullopt;
  UnitLoop found{.loop = std::get_if<ir::Loop>(&block.front().node),
                 .stores = {},
                 .begin = begin,
                 .end = begin + columns};
  if (found.loop == nullptr) return std::nullopt;
  const auto iterations = iterations_of(kernel, product, found.loop->extent);
  if (!iterations || *iterations < kShortestVector) return std::nullopt;
  found.iterations = *iterations;
  const Indices indices(kernel, product, found);
  for (const ir::Stmt& stmt : found.loop->body) {
    const auto* store = std::get_if<ir::Store>(&stmt.node);
    if (store == nullptr || !is_unit_type(kernel, product, store->buffer) ||
        !indices.is_vector(store->index) || !loads_fit(kernel, product, indices, store->value)) {
      return std::nullopt;
    }
    found.stores.push_back(store);
  }
  return found;
}

// The loops of all segments; empty: some segment's can't be done by units.
std::vector<UnitLoop> unit_loops(const Kernel& kernel, const ProductKernel& product) {
  static_assert(Packing::kPanel % kUnitColumns == 0, "tiles hold whole units");
  if (dtype_size_bytes(kernel.buffers[product.weight].dtype) != 2) return {};
  std::vector<UnitLoop> loops;
  int64_t begin = 0;
  for (size_t i = 0; i < product.epilogues.size(); ++i) {
    auto loop = unit_loop(kernel, product, i, begin);
    if (!loop) return {};
    begin = loop->end;
    loops.push_back(*std::move(loop));
  }
  return loops;
}

int64_t units_of(const ProductKernel& product) {
  return packed_columns(product.packing) / kUnitColumns;
}

// Threads and units of each so that few threads have nothing to do behind the last unit; of equal
// ones those of the most units a thread, which are loaded together.
std::optional<UnitBlocks> share_units(int64_t units, int64_t most_each, bool one_block) {
  constexpr std::array kThreads = {256, 224, 288, 192, 320, 352, 384, 160,
                                   416, 128, 448, 480, 512, 96,  64};
  std::optional<UnitBlocks> best;
  int64_t least = 0;
  for (int64_t each = most_each; each > 0; --each) {
    for (const int64_t threads : kThreads) {
      const int64_t blocks = (units + threads * each - 1) / (threads * each);
      const int64_t idle = blocks * threads * each - units;
      if ((one_block && blocks > 1) || (best && idle >= least)) continue;
      best = UnitBlocks{threads, each, blocks};
      least = idle;
    }
  }
  return best;
}

constexpr std::string_view kUnitFunctions = R"(
template <int N>
__device__ __forceinline__ void load_unit(const float* from, float (&x)[N]) {{
  #pragma unroll
  for (int i = 0; i < N; i += 4) {{
    const float4 v = *(const float4*)(from + i);
    x[i] = v.x, x[i + 1] = v.y, x[i + 2] = v.z, x[i + 3] = v.w;
  }}
}}
template <int N>
__device__ __forceinline__ void load_unit(const unsigned short* from, float (&x)[N]) {{
  #pragma unroll
  for (int i = 0; i < N; i += 4) {{
    const uint2 v = *(const uint2*)(from + i);
    x[i] = from_half_word((unsigned short)(v.x & 0xffffu)), x[i + 1] = from_half_word((unsigned short)(v.x >> 16));
    x[i + 2] = from_half_word((unsigned short)(v.y & 0xffffu)), x[i + 3] = from_half_word((unsigned short)(v.y >> 16));
  }}
}}
template <int N>
__device__ __forceinline__ void store_unit(float* to, const float (&x)[N]) {{
  #pragma unroll
  for (int i = 0; i < N; i += 4) *(float4*)(to + i) = make_float4(x[i], x[i + 1], x[i + 2], x[i + 3]);
}}
__device__ __forceinline__ unsigned narrow_pair(float low, float high) {{
  unsigned both;
  asm("cvt.rn.{element}x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}}
template <int N>
__device__ __forceinline__ void store_unit(unsigned short* to, const float (&x)[N]) {{
  #pragma unroll
  for (int i = 0; i < N; i += 4) *(uint2*)(to + i) = make_uint2(narrow_pair(x[i], x[i + 1]), narrow_pair(x[i + 2], x[i + 3]));
}}
enum {{ UNITS = {units} }};
)";

// A unit loads these beside its products, on which none of them depends, so that it may ask for
// them long before those are there, and for all units of a thread at once.
constexpr std::string_view kHeldUnit = R"(
enum {{ WIDEST = {widest} }};
struct HeldUnit {{
  float vectors[{most}][WIDEST];
}};
template <int N, typename T>
__device__ __forceinline__ void hold_vector(const T* from, float (&to)[WIDEST]) {{
  float x[N];
  load_unit(from, x);
  #pragma unroll
  for (int i = 0; i < N; ++i) to[i] = x[i];
}}
)";

constexpr std::string_view kFinishUnit = R"(
__device__ __forceinline__ void hold_unit(const Args& args, long row, long column, HeldUnit& held) {{
{holds}}}
__device__ __forceinline__ void finish_unit(const Args& args, long row, long column, const float (&products)[{columns}], const HeldUnit& held) {{
{finishes}}}
)";

// A thread asks for all of its units before it goes over the first.
constexpr std::string_view kUnitEpilogue = R"(
extern "C" __global__ void __launch_bounds__({threads}, 1) assay_epilogue(const Args args) {{
  enum {{ EACH = {each}, BLOCK = {threads} }};
  let_next_begin();
  wait_for_kernels_ahead();
  const long row = blockIdx.x;
  const int first = blockIdx.y * (EACH * BLOCK) + threadIdx.x;
  const uint4* from = (const uint4*)args.workspace + row * UNITS;
  uint4 held[EACH];
  HeldUnit beside[EACH];
  #pragma unroll
  for (int i = 0; i < EACH; ++i) {{
    const int unit = first + i * BLOCK;
    held[i] = unit < UNITS ? from[unit] : make_uint4(0, 0, 0, 0);
    if (unit < UNITS) hold_unit(args, row, (long)unit * {columns}, beside[i]);
  }}
  #pragma unroll
  for (int i = 0; i < EACH; ++i) {{
    const int unit = first + i * BLOCK;
    if (unit >= UNITS) continue;
    float products[{columns}];
    widen(held[i], products);
    finish_unit(args, row, (long)unit * {columns}, products, beside[i]);
  }}
}}
)";

// Prints one segment's loop: its values as arrays, and the stores of these.
class SegmentText {
 public:
  SegmentText(const Kernel& kernel, const ProductKernel& product, const UnitLoop& loop)
      : product_(product),
        loop_(loop),
        changed_(kernel),
        indices_(kernel, product, loop),
        var_(CPrinter::var_name(loop.loop->var)) {}

  std::string functions(size_t segment) {
    ir::Loop loop{loop_.loop->var, changed_.exprs.index(loop_.iterations), {}};
    const ExprId at = changed_.exprs.var(loop.var);
    std::string stored, to, arrays, names;  // `to`: parameters, arrays that are written
    for (const ir::Store* store : loop_.stores) {
      const std::string index = index_text(store->index);
      const ir::BufferId values = local("s");
      const std::string& name = changed_.buffers[values].name;
      loop.body.push_back({ir::Store{values, at, in_registers(store->value)}});
      to += fmt::format(", float (&{})[{}]", name, loop_.iterations);
      arrays += fmt::format("  float {}[{}];\n", name, loop_.iterations);
      names += ", " + name;
      const std::string& to_buffer = changed_.buffers[store->buffer].name;
      stored +=
          product_.tiled_output
              ? fmt::format("  store_tiled({}, {}, {}, {}, {});\n", to_buffer,
                            product_.packing.segments[segment], CPrinter::var_name(product_.row),
                            CPrinter::var_name(product_.first_column), name)
              : fmt::format("  store_unit({} + {}, {});\n", to_buffer, index, name);
    }
    CPrinter printer(changed_, cuda_unit_target());
    for (const ir::VarId known : {product_.row, product_.first_column}) printer.define(known);
    const std::string values = printer.block({ir::Stmt{std::move(loop)}}, 1);
    const auto begin = [&](std::string_view name) {
      return fmt::format("__device__ __forceinline__ void {}{}(const Args& args, long {}, long {}",
                         name, segment, CPrinter::var_name(product_.row),
                         CPrinter::var_name(product_.first_column));
    };
    const std::string arguments = cuda_arguments(changed_);
    const std::string products = fmt::format(", const float (&{})[{}], const HeldUnit& held",
                                             changed_.buffers[product_.tile].name, kUnitColumns);
    return begin("hold_unit") + ", HeldUnit& held) {\n" + arguments +
           fmt::format("  const long {} = 0;\n{}}}\n", var_, holds_) + begin("unit_values") +
           products + to + ") {\n" + arguments + takes_ + values + "}\n" + begin("finish_unit") +
           products + ") {\n" + arguments + arrays +
           fmt::format("  unit_values{}(args, {}, {}, {}, held{});\n  const long {} = 0;\n{}}}\n",
                       segment, CPrinter::var_name(product_.row),
                       CPrinter::var_name(product_.first_column),
                       changed_.buffers[product_.tile].name, names, var_, stored);
  }

  // Vectors that a unit loads beside its products.
  int64_t held() const { return held_; }

  // A line that calls NAME of this segment for a unit at `column`, if it is one of it.
  std::string call(size_t segment, std::string_view name, std::string_view arguments) const {
    return fmt::format(
        "  if (column >= {0} && column < {1}) {3}{4}(args, row, (column - {0}) / {2}, "
        "{5});\n",
        loop_.begin, loop_.end, product_.packing.interleaved ? 2 : 1, name, segment, arguments);
  }

 private:
  ir::BufferId local(const char* prefix) {
    changed_.buffers.push_back({fmt::format("{}{}", prefix, locals_[prefix]++), DType::kF32, true});
    return static_cast<ir::BufferId>(changed_.buffers.size() - 1);
  }

  // The index in the first iteration, where the loop's variable is 0.
  std::string index_text(ExprId index) const {
    return CPrinter(changed_, cuda_unit_target()).expression(index);
  }

  // The value with vectors loaded ahead of the loop.
  ExprId in_registers(ExprId id) {
    const auto known = replaced_.find(id);
    if (known != replaced_.end()) return known->second;
    const ir::Expr expr = changed_.exprs[id];  // a copy: what follows adds others
    ExprId result = id;
    if (expr.op == Op::kLoad) {
      if (expr.symbol != product_.tile && !indices_.is_one(expr.args[0])) result = vector(expr);
    } else if (!expr.args.empty()) {
      std::vector<ExprId> args;
      for (const ExprId arg : expr.args) args.push_back(in_registers(arg));
      result = changed_.exprs.make(expr.op, std::move(args));
    }
    return replaced_[id] = result;
  }

  ExprId vector(const ir::Expr& load) {
    const ir::BufferId array = local("l");
    const std::string& name = changed_.buffers[array].name;
    holds_ += fmt::format("  hold_vector<{}>({} + {}, held.vectors[{}]);\n", loop_.iterations,
                          changed_.buffers[load.symbol].name, index_text(load.args[0]), held_);
    takes_ += fmt::format("  const float (&{})[WIDEST] = held.vectors[{}];\n", name, held_++);
    return changed_.exprs.load(array, changed_.exprs.var(loop_.loop->var));
  }

  const ProductKernel& product_;
  const UnitLoop& loop_;
  Kernel changed_;
  Indices indices_;
  std::string var_, holds_, takes_;
  int64_t held_ = 0;
  std::map<std::string, int> locals_;
  std::map<ExprId, ExprId> replaced_;
};

}  // namespace

std::optional<UnitBlocks> unit_epilogue_blocks(const Kernel& kernel, const ProductKernel& product) {
  constexpr int64_t kMostEach = 2;
  if (unit_loops(kernel, product).empty()) return std::nullopt;
  return share_units(units_of(product), kMostEach, false);
}

bool stores_rows_by_units(const Kernel& kernel, const ProductKernel& product) {
  const std::vector<UnitLoop> loops = unit_loops(kernel, product);
  if (loops.size() != 1 || loops[0].stores.size() != 1) return false;
  for (ir::BufferId id = 0; id < kernel.bound_buffers; ++id) {
    if (kernel.buffers[id].writable && id != loops[0].stores[0]->buffer) return false;
  }
  ir::Arena arena = kernel.exprs;  // a copy, in which equal expressions have the kernel's ids
  const ExprId width = arena.index(product.packing.segments[0]);
  const ExprId column =
      arena.make(Op::kIndexAdd, {arena.var(product.first_column), arena.var(loops[0].loop->var)});
  const ExprId begin = arena.make(Op::kIndexMul, {arena.var(product.row), width});
  return loops[0].stores[0]->index == arena.make(Op::kIndexAdd, {begin, column});
}

ir::BufferId only_output(const Kernel& kernel) {
  for (ir::BufferId id = 0; id < kernel.bound_buffers; ++id) {
    if (kernel.buffers[id].writable) return id;
  }
  return 0;
}

std::optional<UnitBlocks> unit_row_block(const Kernel& kernel, const ProductKernel& product) {
  constexpr int64_t kMostEach = 8;
  if (!stores_rows_by_units(kernel, product)) return std::nullopt;
  return share_units(units_of(product), kMostEach, true);
}

std::string unit_functions_text(const Kernel& kernel, const ProductKernel& product) {
  const bool f16 = kernel.buffers[product.weight].dtype == DType::kF16;
  return fmt::format(fmt::runtime(kUnitFunctions), fmt::arg("element", f16 ? "f16" : "bf16"),
                     fmt::arg("units", units_of(product)));
}

std::string unit_finish_text(const Kernel& kernel, const ProductKernel& product) {
  const std::vector<UnitLoop> loops = unit_loops(kernel, product);
  std::string functions, holds, finishes;
  int64_t most = 1;  // of vectors
  for (size_t i = 0; i < loops.size(); ++i) {
    SegmentText segment(kernel, product, loops[i]);
    functions += segment.functions(i);
    holds += segment.call(i, "hold_unit", "held");
    finishes += segment.call(i, "finish_unit", "products, held");
    most = std::max(most, segment.held());
  }
  return fmt::format(fmt::runtime(kHeldUnit), fmt::arg("most", most),
                     fmt::arg("widest", kUnitColumns)) +
         functions +
         fmt::format(fmt::runtime(kFinishUnit), fmt::arg("columns", kUnitColumns),
                     fmt::arg("holds", holds), fmt::arg("finishes", finishes));
}

std::string unit_epilogue_text(const Kernel& kernel, const ProductKernel& product) {
  const auto blocks = unit_epilogue_blocks(kernel, product);
  return unit_functions_text(kernel, product) + unit_finish_text(kernel, product) +
         fmt::format(fmt::runtime(kUnitEpilogue), fmt::arg("threads", blocks->threads),
                     fmt::arg("each", blocks->each), fmt::arg("columns", kUnitColumns));
}

}  // namespace assay::engine
