// Rows are rounded where they are computed: behind a norm, behind an epilogue, else by a kernel.
#include "engine/codegen/cuda/fp8_product.h"

#include <fmt/format.h>

#include "engine/block_cells.h"
#include "engine/codegen/cuda/block_slots.h"
#include "engine/codegen/cuda/cuda_product_shape.h"
#include "engine/codegen/cuda/library_product.h"
#include "engine/codegen/cuda/print_cuda.h"
#include "engine/codegen/cuda/unit_epilogue.h"

namespace assay::engine {
namespace {

constexpr int64_t kFp8Multiple = 16;  // cuBLASLt's, of the bytes of a row
constexpr int64_t kFp8Place = 256;    // alignment of the parts of x's memory

int64_t fp8_placed(int64_t bytes) {
  return (bytes + kFp8Place - 1) / kFp8Place * kFp8Place;
}

// A row's pieces of 16 bytes stay in registers between the search for the largest and the
// rounding, unless a thread has more than HELD_MOST.
constexpr std::string_view kFp8Rounding = R"(
#define LARGEST_CODE 448.0f
__device__ __forceinline__ float block_max(float x, int warps) {
  __shared__ float largest[32];
  x = warp_max(x);
  __syncthreads();  // what was read of an earlier call
  if (lane_of_thread() == 0) largest[warp_of_thread()] = x;
  __syncthreads();
  x = 0.0f;
  #pragma unroll
  for (int i = 0; i < warps; ++i) x = fmaxf(x, largest[i]);
  return x;
}
struct RowScale { float of_codes, to_codes; };
__device__ __forceinline__ RowScale scale_of(float largest) {
  RowScale scale = {0.0f, 0.0f};
  if (largest > 1e-30f) scale.of_codes = largest / LARGEST_CODE, scale.to_codes = LARGEST_CODE / largest;
  return scale;
}
// Codes of four neighbours, the first in the lowest byte.
__device__ __forceinline__ unsigned to_codes(float a, float b, float c, float d, float scale) {
  unsigned short low, high;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(low) : "f"(b * scale), "f"(a * scale));
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(high) : "f"(d * scale), "f"(c * scale));
  return low | (unsigned)high << 16;
}
// Bytes behind the first of so many rows' codes.
__device__ __forceinline__ long scales_at(long rows, long inputs) { return (rows * inputs + 255) / 256 * 256; }
// N elements, a multiple of 16, by a warp, or by all threads of the block.
template <int LANES, int N, typename T>
__device__ __forceinline__ void round_row(const T* from, unsigned char* codes, float* scale) {
  enum { EACH = 16 / sizeof(T), PIECES = N / EACH, OWN = (PIECES + LANES - 1) / LANES,
         HELD_MOST = 16, ALL_HELD = OWN <= HELD_MOST };
  const int lane = LANES == 32 ? lane_of_thread() : threadIdx.x;
  uint4 held[ALL_HELD ? OWN : 1];
  float largest = 0.0f;
  #pragma unroll 16
  for (int i = 0; i < OWN; ++i) {
    const int at = i * LANES + lane;
    const uint4 piece = at < PIECES ? *(const uint4*)(from + at * EACH) : make_uint4(0, 0, 0, 0);
    if (ALL_HELD) held[ALL_HELD ? i : 0] = piece;
    float x[EACH];
    widen(piece, x);
    #pragma unroll
    for (int e = 0; e < EACH; ++e) largest = fmaxf(largest, fabsf(x[e]));
  }
  const RowScale scaled = scale_of(LANES == 32 ? warp_max(largest) : block_max(largest, WARPS));
  if (lane == 0) *scale = scaled.of_codes;
  #pragma unroll 16
  for (int i = 0; i < OWN; ++i) {
    const int at = i * LANES + lane;
    if (at >= PIECES) continue;
    float x[EACH];
    widen(ALL_HELD ? held[ALL_HELD ? i : 0] : *(const uint4*)(from + at * EACH), x);
    #pragma unroll
    for (int e = 0; e < EACH; e += 4) {
      *(unsigned*)(codes + at * EACH + e) = to_codes(x[e], x[e + 1], x[e + 2], x[e + 3], scaled.to_codes);
    }
  }
}
)";

constexpr std::string_view kFp8Weight = R"(
enum {{ INPUTS = {inputs} }}; struct Args {{ const void* from; unsigned char* codes; float* scales; }};
extern "C" __global__ void __launch_bounds__(THREADS, 1) assay_round(const Args args) {{
  let_next_begin();
  wait_for_kernels_ahead();
  const long row = blockIdx.x;
  round_row<THREADS, INPUTS>((const unsigned short*)args.from + row * INPUTS, args.codes + row * INPUTS, args.scales + row);
}}
)";

// A block takes 16 columns. Where a column's blocks have one scale, as an fp8 checkpoint's have,
// its codes are copied; others are rounded anew by the largest of its scales.
constexpr std::string_view kFp8Blocks = R"(
enum {{ INPUTS = {inputs} }}; struct Args {{ const void* from; unsigned char* codes; float* scales; }};
__device__ __forceinline__ unsigned rescaled(unsigned codes, float by) {{
  const unsigned low = from_e4m3_pair(codes & 0xffffu), high = from_e4m3_pair(codes >> 16);
  return to_codes(from_f16((unsigned short)(low & 0xffffu)), from_f16((unsigned short)(low >> 16)),
                  from_f16((unsigned short)(high & 0xffffu)), from_f16((unsigned short)(high >> 16)), by);
}}
extern "C" __global__ void __launch_bounds__(THREADS, 1) assay_round(const Args args) {{
  __shared__ float largest[16];
  let_next_begin();
  wait_for_kernels_ahead();
  const char* slots = (const char*)args.from + (long)blockIdx.x * SLOTS * SLOT_BYTES;
  const int lane = lane_of_thread();
  CellScales scales;
  if (threadIdx.x < 16) {{
    unsigned bits = 0;  // of sizes, of which NaN's are the largest
    for (int at = 0; at < INPUTS; at += 32) {{
      cell_scales(slots + at / 128 * SLOT_BYTES, at % 128 / 32, threadIdx.x, scales);
      const unsigned size = __float_as_uint(scales.factor[0]) & 0x7fffffffu;
      bits = size > bits ? size : bits;
    }}
    largest[threadIdx.x] = __uint_as_float(bits);
    args.scales[blockIdx.x * 16l + threadIdx.x] = largest[threadIdx.x];
  }}
  __syncthreads();
  for (int at = warp_of_thread() * 32; at < INPUTS; at += WARPS * 32) {{
    const char* slot = slots + at / 128 * SLOT_BYTES;
    const uint4 all = ((const uint4*)slot)[at % 128 + lane];
    unsigned words[4] = {{all.x, all.y, all.z, all.w}};
    #pragma unroll
    for (int c = 0; c < 2; ++c) {{
      const int column = lane / 4 + c * 8;
      cell_scales(slot, at % 128 / 32, column, scales);
      unsigned char* to = args.codes + (blockIdx.x * 16l + column) * INPUTS + at + lane % 4 * 4;
      const bool same = scales.factor[0] == largest[column] || largest[column] == 0.0f;
      #pragma unroll
      for (int half = 0; half < 2; ++half) {{
        const unsigned codes = words[half * 2 + c];
        *(unsigned*)(to + half * 16) = same ? codes : rescaled(codes, scales.factor[0] / largest[column]);
      }}
    }}
  }}
}}
)";

constexpr std::string_view kFp8Prologue = R"(
extern "C" __global__ void __launch_bounds__(THREADS, 1) assay_prologue(const Args args) {{
  let_next_begin();
  wait_for_kernels_ahead();
  const long {row} = {row_of_thread};
  if ({row} >= rows_of(args)) return;
  unsigned char* codes = (unsigned char*)args.workspace;
  const long at_scales = scales_at(rows_of(args), INPUTS);
  float* scale = (float*)(codes + at_scales) + {row};
{body}}}
)";

// A block holds a row of the output in its registers, by units (unit_epilogue.h), between the
// search for the largest and the rounding. The last rows come first: the cache may still have them.
constexpr std::string_view kFp8Epilogue = R"(
extern "C" __global__ void __launch_bounds__({threads}, 1) assay_epilogue_to_codes(const Args args) {{
  enum {{ EACH = {each}, BLOCK = {threads}, VALUES = {values}, WIDTH = {width} }};
  let_next_begin();
  wait_for_kernels_ahead();
  const long row = gridDim.x - 1 - blockIdx.x;
  const uint4* from = (const uint4*)args.workspace + row * UNITS;
  uint4 held[EACH];
  #pragma unroll
  for (int i = 0; i < EACH; ++i) {{
    const int unit = i * BLOCK + threadIdx.x;
    held[i] = unit < UNITS ? from[unit] : make_uint4(0, 0, 0, 0);
  }}
  float x[EACH][VALUES], largest = 0.0f;
  #pragma unroll
  for (int i = 0; i < EACH; ++i) {{
    const int unit = i * BLOCK + threadIdx.x;
    if (unit >= UNITS) continue;
    float products[{columns}];
    widen(held[i], products);
    HeldUnit beside;
    hold_unit0(args, row, (long)unit * VALUES, beside);
    unit_values0(args, row, (long)unit * VALUES, products, beside, x[i]);
    #pragma unroll
    for (int v = 0; v < VALUES; ++v) largest = fmaxf(largest, fabsf(x[i][v]));
  }}
  const RowScale scaled = scale_of(block_max(largest, BLOCK / 32));
  unsigned char* codes = (unsigned char*)args.buffers[{output}];
  if (threadIdx.x == 0) ((float*)(codes + scales_at(rows_of(args), WIDTH)))[row] = scaled.of_codes;
  #pragma unroll
  for (int i = 0; i < EACH; ++i) {{
    const int unit = i * BLOCK + threadIdx.x;
    if (unit >= UNITS) continue;
    #pragma unroll
    for (int v = 0; v < VALUES; v += 4) {{
      *(unsigned*)(codes + row * WIDTH + unit * VALUES + v) =
          to_codes(x[i][v], x[i][v + 1], x[i][v + 2], x[i][v + 3], scaled.to_codes);
    }}
  }}
}}
)";

// Rows of at most so many bytes are a warp's, which keeps them in registers.
constexpr int64_t kWarpRowBytes = 8192;

bool by_warps(const Kernel& kernel, const ProductKernel& product) {
  const KernelBuffer& x = kernel.buffers[product.x];
  return !product.has_prologue &&
         product.inputs * static_cast<int64_t>(dtype_size_bytes(x.dtype)) <= kWarpRowBytes;
}

}  // namespace

std::optional<std::string> why_not_fp8(const Kernel& kernel, const ProductKernel& product) {
  if (!product.fp8) return "not asked for";
  const KernelBuffer& weight = kernel.buffers[product.weight];
  const bool codes = weight.blocks && block_parts(weight.blocks->format).is_float;
  if ((weight.blocks && !codes) || weight.dtype == DType::kF32) {
    return "a weight of other than 16 bits or e4m3";
  }
  if (codes && weight.blocks->ordered) return "inputs in an order of their own";
  if (product.rows.power(1) == 0 || kernel.dims.q_len == 1)
    return "not of all positions of a prompt";
  const int64_t outputs = packed_columns(product.packing);
  const bool even = product.packing.segments[0] % kFp8Multiple == 0;
  if (product.inputs % kFp8Multiple != 0 || (product.packing.segments.size() == 1 && !even)) {
    return fmt::format(
        "expected multiples of {} inputs and outputs, found {} and {}", kFp8Multiple,
        product.inputs,
        product.packing.segments.size() == 1 ? product.packing.segments[0] : outputs);
  }
  return std::nullopt;
}

Fp8Rows fp8_rows(int64_t rows, int64_t inputs) {
  Fp8Rows places{.scales_at = fp8_placed(rows * inputs)};
  places.wide_at = fp8_placed(places.scales_at + rows * static_cast<int64_t>(sizeof(float)));
  places.bytes = places.wide_at + rows * inputs * 2;
  return places;
}

bool may_write_codes(const Kernel& first, const Kernel& second) {
  const auto* writer = std::get_if<ProductKernel>(&first.body);
  const auto* reader = std::get_if<ProductKernel>(&second.body);
  if (writer == nullptr || reader == nullptr || reader->has_prologue) return false;
  return multiplies_fp8(second, *reader) && writer->packing.segments[0] == reader->inputs &&
         !library_product(first, *writer).direct && unit_row_block(first, *writer);
}

CudaLaunch fp8_epilogue_launch(const Kernel& kernel, const ProductKernel& product, int64_t rows) {
  return {"assay_epilogue_to_codes", rows, 1, 1, unit_row_block(kernel, product)->threads};
}

CudaLaunch fp8_prologue_launch(const Kernel& kernel, const ProductKernel& product, int64_t rows) {
  const int64_t threads = cuda_product_shape(kernel, product).threads;
  const int64_t rows_of_block = by_warps(kernel, product) ? threads / 32 : 1;
  return {"assay_prologue", (rows + rows_of_block - 1) / rows_of_block, 1, 1, threads};
}

std::string fp8_rounding_text() {
  return std::string(kFp8Rounding);
}

std::string fp8_prologue_text(const Kernel& kernel, const ProductKernel& product,
                              const std::string& row, const std::string& wide) {
  std::string body;
  if (wide.empty()) {
    body = fmt::format("  round_row<{}, INPUTS>({} + {} * INPUTS, codes + {} * INPUTS, scale);\n",
                       by_warps(kernel, product) ? "32" : "THREADS", kernel.buffers[product.x].name,
                       row, row);
  } else {
    body = fmt::format(
        "  weight_t* __restrict__ to = (weight_t*)(codes + (at_scales + rows_of(args) * 4 + 255) / "
        "256 * 256) + {0} * INPUTS;\n{1}  __syncthreads();\n"
        "  round_row<THREADS, INPUTS>(to, codes + {0} * INPUTS, scale);\n",
        row, wide);
  }
  return fmt::format(fmt::runtime(kFp8Prologue), fmt::arg("row", row),
                     fmt::arg("row_of_thread", by_warps(kernel, product)
                                                   ? "(long)blockIdx.x * WARPS + warp_of_thread()"
                                                   : "blockIdx.x"),
                     fmt::arg("body", cuda_arguments(kernel) + body));
}

std::string fp8_epilogue_text(const Kernel& kernel, const ProductKernel& product) {
  const UnitBlocks block = *unit_row_block(kernel, product);
  const int64_t width = product.packing.segments[0];
  const int64_t columns = packed_columns(product.packing);
  return fmt::format(fmt::runtime(kFp8Epilogue), fmt::arg("threads", block.threads),
                     fmt::arg("each", block.each), fmt::arg("columns", kUnitColumns),
                     fmt::arg("values", kUnitColumns * width / columns), fmt::arg("width", width),
                     fmt::arg("output", only_output(kernel)));
}

std::string print_fp8_weight(DType dtype, int64_t inputs) {
  return cuda_prelude() + cuda_widen_text(dtype) + fp8_rounding_text() +
         fmt::format(fmt::runtime(kFp8Weight), fmt::arg("inputs", inputs));
}

std::string print_fp8_blocks(WeightFormat format, int64_t inputs) {
  return cuda_prelude() + cuda_widen_text(DType::kBF16) + fp8_rounding_text() +
         cuda_slot_text(format, inputs) +
         fmt::format(fmt::runtime(kFp8Blocks), fmt::arg("inputs", inputs));
}

}  // namespace assay::engine
