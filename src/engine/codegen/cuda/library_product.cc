// The same prologues and epilogues as of few rows, on memory of the weight's type.
#include "engine/codegen/cuda/library_product.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "engine/codegen/cuda/cuda_form.h"
#include "engine/codegen/cuda/cuda_product_shape.h"
#include "engine/codegen/cuda/cuda_target.h"
#include "engine/codegen/cuda/fp8_product.h"
#include "engine/codegen/cuda/print_cuda.h"
#include "engine/codegen/cuda/unit_epilogue.h"

namespace assay::engine {
namespace {

using ir::ExprId;
using ir::Op;

// Memory of the library's: x as it reads it, a row of products as it writes them.
Kernel in_library_types(const Kernel& kernel, const ProductKernel& product) {
  Kernel changed = kernel;
  const DType dtype = kernel.buffers[product.weight].dtype;
  if (product.has_prologue) changed.buffers[product.x].dtype = dtype;
  changed.buffers[product.tile].dtype = dtype;
  return changed;
}

// Finds the store at [row, column] of one segment whose columns lie in their order: a sum of loads.
class Direct {
 public:
  Direct(const Kernel& kernel, const ProductKernel& product)
      : kernel_(kernel), product_(product), arena_(kernel.exprs) {}

  std::optional<DirectOutput> find() {
    const ir::Block& block = product_.epilogues.front();
    if (!keeps_order() || block.size() != 1) return std::nullopt;
    const auto* loop = std::get_if<ir::Loop>(&block.front().node);
    if (loop == nullptr || loop->body.size() != 1) return std::nullopt;
    const auto* store = std::get_if<ir::Store>(&loop->body.front().node);
    if (store == nullptr) return std::nullopt;
    at_tile_ = arena_.var(loop->var);
    column_ = arena_.make(Op::kIndexAdd, {arena_.var(product_.first_column), at_tile_});
    const ExprId width = arena_.index(product_.packing.segments[0]);
    const ExprId row = arena_.make(Op::kIndexMul, {arena_.var(product_.row), width});
    element_ = arena_.make(Op::kIndexAdd, {row, column_});
    if (store->index != element_) return std::nullopt;
    output_.out = store->buffer;
    if (!add_terms(store->value) || products_ != 1) return std::nullopt;
    return output_;
  }

 private:
  bool keeps_order() const {
    const Packing& packing = product_.packing;
    return packing.segments.size() == 1 && !packing.interleaved && packing.half_head <= 1;
  }

  bool add_terms(ExprId value) {
    const ir::Expr& expr = arena_[value];
    if (expr.op == Op::kAdd) {
      const ExprId first = expr.args[0], second = expr.args[1];
      return add_terms(first) && add_terms(second);
    }
    if (expr.op != Op::kLoad) return false;
    const ir::BufferId buffer = expr.symbol;
    if (buffer == product_.tile) {
      ++products_;
      return expr.args[0] == at_tile_;
    }
    if (kernel_.buffers[buffer].dtype != kernel_.buffers[output_.out].dtype) return false;
    if (expr.args[0] == element_ && !output_.addend) {
      output_.addend = buffer;
      return true;
    }
    if (expr.args[0] == column_ && !output_.bias) {
      output_.bias = buffer;
      return true;
    }
    return false;
  }

  const Kernel& kernel_;
  const ProductKernel& product_;
  ir::Arena arena_;  // a copy, in which equal expressions have the ids that they have in the kernel
  ExprId at_tile_ = 0, column_ = 0, element_ = 0;
  DirectOutput output_;
  int products_ = 0;
};

constexpr std::string_view kPrologue = R"(
extern "C" __global__ void __launch_bounds__(THREADS, 1) assay_prologue(const Args args) {{
  let_next_begin();
  wait_for_kernels_ahead();
{arguments}  const long {row} = blockIdx.x;
  weight_t* __restrict__ to = (weight_t*)(args.workspace + X_AT) + {row} * PITCH;
{body}}}
)";

// An RMS norm alone: a thread holds its share of the row, four elements a load, and asks for the
// norm's weight before the kernels ahead have ended. Loads that wait for the sum, and then for each
// other, would take most of the time.
constexpr std::string_view kNormPrologue = R"(
typedef {norm_type} norm_t;
__device__ __forceinline__ float widen_norm(float x) {{ return x; }}
__device__ __forceinline__ float widen_norm(unsigned short x) {{ return {widen}(x); }}
__device__ __forceinline__ void load_four(const float* p, float (&x)[4]) {{
  const float4 v = *(const float4*)p;
  x[0] = v.x, x[1] = v.y, x[2] = v.z, x[3] = v.w;
}}
__device__ __forceinline__ void load_four(const unsigned short* p, float (&x)[4]) {{
  const uint2 v = *(const uint2*)p;
  x[0] = widen_norm((unsigned short)(v.x & 0xffffu)), x[1] = widen_norm((unsigned short)(v.x >> 16));
  x[2] = widen_norm((unsigned short)(v.y & 0xffffu)), x[3] = widen_norm((unsigned short)(v.y >> 16));
}}
__device__ __forceinline__ void store_four(float* p, const float (&x)[4]) {{
  *(float4*)p = make_float4(x[0], x[1], x[2], x[3]);
}}
__device__ __forceinline__ void store_four(unsigned short* p, const float (&x)[4]) {{
  *(uint2*)p = make_uint2({narrow}(x[0]) | (unsigned){narrow}(x[1]) << 16,
                          {narrow}(x[2]) | (unsigned){narrow}(x[3]) << 16);
}}

extern "C" __global__ void __launch_bounds__(THREADS, 1) assay_prologue(const Args args) {{
  enum {{ OWN = (INPUTS / 4 + THREADS - 1) / THREADS, EVEN = INPUTS == OWN * 4 * THREADS }};
  let_next_begin();
  const norm_t* weight = (const norm_t*)args.buffers[{norm}];
  float scale[OWN][4], x[OWN][4], squares = 0.0f;
  #pragma unroll
  for (int i = 0; i < OWN; ++i) {{
    const int at = (i * THREADS + threadIdx.x) * 4;
    if (EVEN || at < INPUTS) load_four(weight + at, scale[i]);
  }}
  wait_for_kernels_ahead();
  const long row = blockIdx.x;
  const float* from = inputs_of(args, row);
  #pragma unroll
  for (int i = 0; i < OWN; ++i) {{
    const int at = (i * THREADS + threadIdx.x) * 4;
    if (EVEN || at < INPUTS) load_four(from + at, x[i]);
    else x[i][0] = x[i][1] = x[i][2] = x[i][3] = 0.0f;
  }}
  #pragma unroll
  for (int i = 0; i < OWN; ++i) {{
    #pragma unroll
    for (int e = 0; e < 4; ++e) squares += x[i][e] * x[i][e];
  }}
  const float root = 1.0f / sqrtf(block_sum(squares) * (1.0f / INPUTS) + EPSILON);
{tail}}}
)";

constexpr std::string_view kNormTail = R"(
  weight_t* to = (weight_t*)(args.workspace + X_AT) + row * PITCH;
  #pragma unroll
  for (int i = 0; i < OWN; ++i) {
    const int at = (i * THREADS + threadIdx.x) * 4;
    if (!EVEN && at >= INPUTS) continue;
    #pragma unroll
    for (int e = 0; e < 4; ++e) x[i][e] = x[i][e] * root * scale[i][e];
    store_four(to + at, x[i]);
  }
)";
constexpr std::string_view kNormTailTiles = R"(
  #pragma unroll
  for (int i = 0; i < OWN; ++i) {
    const int at = (i * THREADS + threadIdx.x) * 4;
    if (!EVEN && at >= INPUTS) continue;
    #pragma unroll
    for (int e = 0; e < 4; ++e) x[i][e] = x[i][e] * root * scale[i][e];
    put_four(args, row, at, x[i]);
  }
)";
constexpr std::string_view kNormTailFp8 = R"(
  float largest = 0.0f;
  #pragma unroll
  for (int i = 0; i < OWN; ++i) {
    if (!EVEN && (i * THREADS + threadIdx.x) * 4 >= INPUTS) continue;
    #pragma unroll
    for (int e = 0; e < 4; ++e) {
      x[i][e] = x[i][e] * root * scale[i][e];
      largest = fmaxf(largest, fabsf(x[i][e]));
    }
  }
  const RowScale scaled = scale_of(block_max(largest, WARPS));
  unsigned char* codes = (unsigned char*)args.workspace;
  if (threadIdx.x == 0) ((float*)(codes + scales_at(rows_of(args), INPUTS)))[row] = scaled.of_codes;
  #pragma unroll
  for (int i = 0; i < OWN; ++i) {
    const int at = (i * THREADS + threadIdx.x) * 4;
    if (!EVEN && at >= INPUTS) continue;
    *(unsigned*)(codes + row * INPUTS + at) = to_codes(x[i][0], x[i][1], x[i][2], x[i][3], scaled.to_codes);
  }
)";

// A warp takes some columns of a row into shared memory, 16 bytes a lane and load, before it goes
// over them: loads that wait for each other would take all the time.
constexpr std::string_view kEpilogue = R"(
extern "C" __global__ void __launch_bounds__(THREADS, 1) assay_epilogue(const Args args) {{
  enum {{ COUNT = {count}, LANE_ELEMENTS = 16 / sizeof(weight_t) }};
  __shared__ __align__(16) weight_t products[WARPS][COUNT];
  let_next_begin();
  wait_for_kernels_ahead();
  const int warp = warp_of_thread(), lane = lane_of_thread();
  const long row = (long)blockIdx.y * WARPS + warp, column = (long)blockIdx.x * COUNT;
  if (row >= rows_of(args)) return;
  const weight_t* from = (const weight_t*)args.workspace + row * {columns} + column;
  #pragma unroll
  for (int i = 0; i < COUNT; i += 32 * LANE_ELEMENTS) {{
    const int at = i + lane * LANE_ELEMENTS;
    if (at < COUNT) *(uint4*)(products[warp] + at) = *(const uint4*)(from + at);
  }}
  __syncwarp();
  epilogue_row(args, row, column, COUNT, products[warp]);
}}
)";

// All values of a weight in blocks, in the weight's type, [columns, PITCH], inputs in their own
// order: a warp takes a slot. It reads what no kernel writes, and those ahead read another place,
// so that it waits for them when it is done: for the product behind it, which reads what they
// write.
constexpr std::string_view kDecode = R"(
__device__ __forceinline__ void decode_slot(const Args& args) {
  const int lane = lane_of_thread();
  const long number = (long)blockIdx.x * WARPS + warp_of_thread(), group = number / SLOTS;
  if (group >= COLUMNS / 16) return;
  const int first = (int)(number % SLOTS) * 128;
  const char* slot = (const char*)args.buffers[WEIGHT] + number * SLOT_BYTES;
  unsigned short* to = (unsigned short*)args.workspace + group * 16 * PITCH;
  #pragma unroll
  for (int cell = 0; cell < 4; ++cell) {
    if (first + cell * 32 >= INPUTS) break;
    CellCodes codes;
    cell_codes(slot, cell, lane, codes);
    #pragma unroll
    for (int c = 0; c < 2; ++c) {
      CellScales scales;
      cell_scales(slot, cell, lane / 4 + c * 8, scales);
      unsigned words[4];
      #pragma unroll
      for (int p = 0; p < 4; ++p) {
        const int half = HALVES == 2 ? p / 2 : 0;
        words[p] = pack(code_value(codes, c, 2 * p) * scales.factor[half] + scales.offset[half],
                        code_value(codes, c, 2 * p + 1) * scales.factor[half] + scales.offset[half]);
      }
      unsigned short* column = to + (long)(lane / 4 + c * 8) * PITCH;
      const int at = first + cell * 32 + lane % 4 * 4;
      if (ORDERED) {
        #pragma unroll
        for (int v = 0; v < 8; ++v) {
          column[input_order(args)[at + own_input(v)]] = (unsigned short)(words[v / 2] >> v % 2 * 16 & 0xffffu);
        }
        continue;
      }
      *(uint2*)(column + at) = make_uint2(words[0], words[1]);
      *(uint2*)(column + at + 16) = make_uint2(words[2], words[3]);
    }
  }
}
extern "C" __global__ void __launch_bounds__(THREADS, 1) assay_decode(const Args args) {
  let_next_begin();
  decode_slot(args);
  wait_for_kernels_ahead();
}
)";

bool is_held_in_registers(const Kernel& kernel, const ProductKernel& product) {
  return is_norm_held(product, cuda_product_shape(kernel, product).threads);
}

bool is_tiles(const Kernel& kernel, const ProductKernel& product) {
  return cuda_product_shape(kernel, product).form == CudaProductForm::kTiles;
}

std::string norm_prologue_text(const Kernel& kernel, const ProductKernel& product) {
  const DType norm = kernel.buffers[product.norm->weight].dtype;
  const bool f16 = kernel.buffers[product.weight].dtype == DType::kF16;
  return fmt::format(
      fmt::runtime(kNormPrologue), fmt::arg("norm_type", element_type(norm, "unsigned short")),
      fmt::arg("widen", norm == DType::kF16    ? "from_f16"
                        : norm == DType::kBF16 ? "from_bf16"
                                               : ""),
      fmt::arg("narrow", f16 ? "to_f16" : "to_bf16"), fmt::arg("norm", product.norm->weight),
      fmt::arg("tail", is_tiles(kernel, product)         ? kNormTailTiles
                       : multiplies_fp8(kernel, product) ? kNormTailFp8
                                                         : kNormTail));
}

std::string prologue_text(const Kernel& kernel, const ProductKernel& product) {
  if (is_held_in_registers(kernel, product)) return norm_prologue_text(kernel, product);
  const std::string row = CPrinter::var_name(product.row);
  const KernelBuffer& x = kernel.buffers[product.x];
  const bool fp8 = multiplies_fp8(kernel, product), tiles = is_tiles(kernel, product);
  if (fp8 && !product.has_prologue) return fp8_prologue_text(kernel, product, row, "");
  std::string body;
  if (product.has_prologue) {
    const Kernel changed = in_library_types(kernel, product);
    CPrinter printer(changed, cuda_block_target());
    printer.define(product.row);
    body = fmt::format("  weight_t* __restrict__ {} = to;\n", x.name) +
           printer.block(product.prologue, 1);
    if (fp8) return fp8_prologue_text(kernel, product, row, body);
  } else if (tiles) {
    body = fmt::format("  put_row(args, {0}, {1} + {0} * INPUTS);\n", row, x.name);
  } else {
    const DType weight = kernel.buffers[product.weight].dtype;
    body = fmt::format(
        "  for (long i = threadIdx.x; i < INPUTS; i += THREADS) to[i] = {}({}[{} * INPUTS + i]);\n",
        weight == DType::kF16 ? "to_f16" : "to_bf16", x.name, row);
  }
  return fmt::format(fmt::runtime(kPrologue), fmt::arg("arguments", cuda_arguments(kernel)),
                     fmt::arg("row", row), fmt::arg("body", body));
}

std::string epilogue_text(const Kernel& kernel, const ProductKernel& product) {
  if (unit_epilogue_blocks(kernel, product)) return unit_epilogue_text(kernel, product);
  const int64_t columns = packed_columns(product.packing);
  // For few rows it is defined on fp32 products.
  const bool defined = kernel.buffers[product.weight].dtype == DType::kF32;
  return (defined ? "" : cuda_epilogue_row(in_library_types(kernel, product), product, true)) +
         fmt::format(fmt::runtime(kEpilogue), fmt::arg("columns", columns),
                     fmt::arg("count", library_epilogue_columns(product.packing)));
}

}  // namespace

bool is_norm_held(const ProductKernel& product, int64_t threads) {
  constexpr int64_t kMostElements = 32;  // of a thread, and as many of the norm's weight
  return product.norm && product.inputs % 4 == 0 && product.inputs <= kMostElements * threads;
}

int64_t library_epilogue_columns(const Packing& packing) {
  constexpr int64_t kMost = 512;
  const int64_t abreast = packing.interleaved ? 2 : 1;
  int64_t tiles = 0;  // that every segment is a multiple of
  for (const int64_t width : packing.segments) {
    tiles = std::gcd(tiles, (width * abreast + packing.tile - 1) / packing.tile);
    if (packing.interleaved) break;
  }
  int64_t taken = std::max<int64_t>(kMost / packing.tile, 1);
  while (tiles % taken != 0) --taken;
  return taken * packing.tile;
}

bool may_have_many_rows(const Kernel& kernel, const ProductKernel& product) {
  const std::optional<int64_t> rows = cuda_form_rows(kernel, product.rows);
  if (!rows) return true;
  if (is_tiles(kernel, product)) return false;
  if (kernel.buffers[product.weight].blocks) {
    // Weights would be taken apart again for each few rows whose x fits a block.
    return *rows > cuda_most_tensor_rows(kernel, product) ||
           (*rows > kCudaTensorRows && cuda_product_shape(kernel, product).rows < kCudaTensorRows);
  }
  return *rows > kProductRows && cuda_product_shape(kernel, product).form == CudaProductForm::kHeld;
}

LibraryProduct library_product(const Kernel& kernel, const ProductKernel& product) {
  const DType weight = kernel.buffers[product.weight].dtype;
  const bool fp8 = multiplies_fp8(kernel, product);
  LibraryProduct parts{
      .prologue = fp8 || product.has_prologue || kernel.buffers[product.x].dtype != weight,
      .fp8 = fp8,
      .direct = Direct(kernel, product).find()};
  if (fp8 && parts.direct && parts.direct->bias) parts.direct.reset();  // of 16 bits at most
  return parts;
}

std::string print_library_prologue(const Kernel& kernel, const ProductKernel& product) {
  return prologue_text(kernel, product);
}

std::string print_library_entries(const Kernel& kernel, const ProductKernel& product) {
  const LibraryProduct parts = library_product(kernel, product);
  std::string text;
  if (kernel.buffers[product.weight].blocks && !parts.fp8) text += kDecode;
  if (parts.fp8 || product.codes_output) text += fp8_rounding_text();
  if (parts.prologue) text += "\nenum { X_AT = 0 };\n" + print_library_prologue(kernel, product);
  if (!parts.direct) text += epilogue_text(kernel, product);
  if (product.codes_output) text += fp8_epilogue_text(kernel, product);
  return text;
}

}  // namespace assay::engine
