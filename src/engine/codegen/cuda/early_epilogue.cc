// The same text with buffers as objects: what they are asked for, in the order of the text, they
// read or have kept.
#include "engine/codegen/cuda/early_epilogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "engine/codegen/cuda/cuda_target.h"
#include "engine/codegen/cuda/print_cuda.h"

namespace assay::engine {
namespace {

constexpr std::string_view kAccess = R"(
#ifndef METHOD  // of a struct
#define METHOD __device__ __forceinline__
#endif
// Each segment of columns counts from 0, so that places are constants and the arrays registers.
struct Kept { float floats[MOST_KEPT]; int ints[MOST_KEPT]; };
struct Asking {
  Kept kept;
  int float_count, int_count;
  METHOD void begin_segment() { float_count = int_count = 0; }
  METHOD float get(const float* p) { return kept.floats[float_count++] = *p; }
  template <class T> METHOD T get(const T* p) { return (T)(kept.ints[int_count++] = *p); }
  template <class T> METHOD void put(T*, T) {}
};
struct Giving {
  Kept kept;
  int float_count, int_count;
  METHOD void begin_segment() { float_count = int_count = 0; }
  METHOD float get(const float*) { return kept.floats[float_count++]; }
  template <class T> METHOD T get(const T*) { return (T)kept.ints[int_count++]; }
  template <class T> METHOD void put(T* p, T value) { *p = value; }
};
template <class A, class T> struct From {
  A& access;
  const T* p;
  METHOD T operator[](long i) const { return access.get(p + i); }
};
template <class A, class T> struct Place {
  A& access;
  T* p;
  METHOD void operator=(T value) const { access.put(p, value); }
};
template <class A, class T> struct Into {
  A& access;
  T* p;
  METHOD Place<A, T> operator[](long i) const { return {access, p + i}; }
};
)";

// Finds out if the epilogue is a loop of stores over columns, or pairs of them, for each segment,
// and reads no buffer that it writes.
class ColumnLoops {
 public:
  ColumnLoops(const Kernel& kernel, const ProductKernel& product)
      : kernel_(kernel), product_(product) {}

  bool fits() const {
    return std::ranges::all_of(product_.epilogues,
                               [&](const ir::Block& block) { return is_loop(block); });
  }

 private:
  bool is_loop(const ir::Block& block) const {
    const auto* loop = block.size() == 1 ? std::get_if<ir::Loop>(&block.front().node) : nullptr;
    return loop != nullptr && counts_columns(loop->extent) &&
           std::ranges::all_of(loop->body, [&](const ir::Stmt& stmt) {
             const auto* store = std::get_if<ir::Store>(&stmt.node);
             return store != nullptr && only_reads(store->index) && only_reads(store->value);
           });
  }

  bool counts_columns(ir::ExprId extent) const {
    const ir::Expr& expr = kernel_.exprs[extent];
    if (expr.op == ir::Op::kIndexDiv) {
      return counts_columns(expr.args[0]) && kernel_.exprs.constant(expr.args[1]);
    }
    return expr.op == ir::Op::kVar && expr.symbol == product_.column_count;
  }

  bool only_reads(ir::ExprId id) const {
    const ir::Expr& expr = kernel_.exprs[id];
    const bool written = expr.op == ir::Op::kLoad && expr.symbol != product_.tile &&
                         kernel_.buffers[expr.symbol].writable;
    return !written &&
           std::ranges::all_of(expr.args, [&](ir::ExprId arg) { return only_reads(arg); });
  }

  const Kernel& kernel_;
  const ProductKernel& product_;
};

// Counts the places where the text of a segment reads one of the buffers; `steady`: stays true if
// all of these are.
size_t reads_in(const std::string& text, const Kernel& kernel, bool& steady) {
  size_t reads = 0;
  for (size_t i = 0; i < kernel.bound_buffers; ++i) {
    const std::string read = kernel.buffers[i].name + "[";
    if (kernel.buffers[i].writable) continue;
    for (size_t at = text.find(read); at != std::string::npos; at = text.find(read, at + 1)) {
      ++reads;
      steady &= kernel.buffers[i].steady;
    }
  }
  return reads;
}

std::string buffers_text(const Kernel& kernel) {
  std::string text;
  for (size_t i = 0; i < kernel.bound_buffers; ++i) {
    const KernelBuffer& buffer = kernel.buffers[i];
    text +=
        fmt::format("  const {0}<A, {1}> {2} = {{access, ({3}{1}*)args.buffers[{4}]}};\n",
                    buffer.writable ? "Into" : "From", element_type(buffer.dtype, "unsigned short"),
                    buffer.name, buffer.writable ? "" : "const ", i);
  }
  return text;
}

}  // namespace

std::string early_epilogue_text(const Kernel& kernel, const ProductKernel& product) {
  const bool fits = ColumnLoops(kernel, product).fits();
  size_t most = 0;
  bool steady = true;
  std::string segments;
  for (size_t i = 0; fits && i < product.epilogues.size(); ++i) {
    const std::string segment = cuda_epilogue_segment(kernel, product, i, cuda_lane_target(),
                                                      "    access.begin_segment();\n");
    most = std::max(most, reads_in(segment, kernel, steady));
    segments += segment;
  }
  Kernel no_buffers = kernel;
  no_buffers.bound_buffers = 0;
  return fmt::format(
      "\nenum {{ READS_EARLY = {}, READS_STEADY = {}, MOST_KEPT = {} }};\n{}\ntemplate <class "
      "A>\n__device__ "
      "__forceinline__ void "
      "early_epilogue(const Args& args, long {}, long column, long count, const float* {}, A& "
      "access) {{\n{}{}{}}}\n",
      most == 0 ? 0 : 1, most != 0 && steady ? 1 : 0, std::max<size_t>(most, 1), kAccess,
      CPrinter::var_name(product.row), kernel.buffers[product.tile].name,
      cuda_arguments(no_buffers), most == 0 ? "" : buffers_text(kernel), most == 0 ? "" : segments);
}

}  // namespace assay::engine
