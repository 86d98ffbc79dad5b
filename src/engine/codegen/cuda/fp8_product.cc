// Rows are rounded where they are computed: behind a norm, behind an epilogue, else by a kernel.
#include "engine/codegen/cuda/fp8_product.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/codegen/cuda/cuda_product_shape.h"
#include "engine/codegen/cuda/library_product.h"
#include "engine/codegen/cuda/print_cuda.h"

namespace assay::engine {
namespace {

constexpr int64_t kFp8Multiple = 16;  // cuBLASLt's, of the bytes of a row
constexpr int64_t kFp8Place = 256;    // alignment of the parts of x's memory
constexpr int64_t kFp8SharedBytes = 47 * 1024;

int64_t fp8_placed(int64_t bytes) {
  return (bytes + kFp8Place - 1) / kFp8Place * kFp8Place;
}

// A row's pieces of 16 bytes stay in registers between the search for the largest and the
// rounding, unless a thread has more than HELD_MOST.
constexpr std::string_view kFp8Rounding = R"(
#define LARGEST_CODE 448.0f
__device__ __forceinline__ float block_max(float x) {
  __shared__ float largest[WARPS];
  x = warp_max(x);
  __syncthreads();  // what was read of an earlier call
  if (lane_of_thread() == 0) largest[warp_of_thread()] = x;
  __syncthreads();
  x = 0.0f;
  #pragma unroll
  for (int i = 0; i < WARPS; ++i) x = fmaxf(x, largest[i]);
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
// N elements, a multiple of 16.
template <int N, typename T>
__device__ __forceinline__ void round_row(const T* from, unsigned char* codes, float* scale) {
  enum { EACH = 16 / sizeof(T), PIECES = N / EACH, OWN = (PIECES + THREADS - 1) / THREADS,
         HELD_MOST = 16, ALL_HELD = OWN <= HELD_MOST };
  uint4 held[ALL_HELD ? OWN : 1];
  float largest = 0.0f;
  #pragma unroll 16
  for (int i = 0; i < OWN; ++i) {
    const int at = i * THREADS + threadIdx.x;
    const uint4 piece = at < PIECES ? *(const uint4*)(from + at * EACH) : make_uint4(0, 0, 0, 0);
    if (ALL_HELD) held[ALL_HELD ? i : 0] = piece;
    float x[EACH];
    widen(piece, x);
    #pragma unroll
    for (int e = 0; e < EACH; ++e) largest = fmaxf(largest, fabsf(x[e]));
  }
  const RowScale scaled = scale_of(block_max(largest));
  if (threadIdx.x == 0) *scale = scaled.of_codes;
  #pragma unroll 16
  for (int i = 0; i < OWN; ++i) {
    const int at = i * THREADS + threadIdx.x;
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
  round_row<INPUTS>((const unsigned short*)args.from + row * INPUTS, args.codes + row * INPUTS, args.scales + row);
}}
)";

constexpr std::string_view kFp8Prologue = R"(
extern "C" __global__ void __launch_bounds__(THREADS, 1) assay_prologue(const Args args) {{
  let_next_begin();
  wait_for_kernels_ahead();
  const long {row} = blockIdx.x;
  unsigned char* codes = (unsigned char*)args.workspace;
  const long at_scales = scales_at(rows_of(args), INPUTS);
  float* scale = (float*)(codes + at_scales) + {row};
{body}}}
)";

// A block takes a part of the row's products into its memory, goes over it as the warps of
// assay_epilogue do, with the output in its memory too, and takes the next one.
constexpr std::string_view kFp8Epilogue = R"(
extern "C" __global__ void __launch_bounds__(THREADS, 1) assay_epilogue_to_codes(const Args args) {{
  enum {{ ALL = {columns}, COUNT = {count}, PART = {part}, WIDTH = {width}, LANE_ELEMENTS = 16 / sizeof(weight_t) }};
  __shared__ __align__(16) weight_t products[PART];
  __shared__ __align__(16) weight_t output[WIDTH];
  let_next_begin();
  wait_for_kernels_ahead();
  const long row = blockIdx.x;
  const weight_t* from = (const weight_t*)args.workspace + row * ALL;
  Args here = args;
  here.buffers[{output}] = output - row * WIDTH;
  for (int begin = 0; begin < ALL; begin += PART) {{
    const int count = ALL - begin < PART ? ALL - begin : PART;
    #pragma unroll 8
    for (int at = threadIdx.x * LANE_ELEMENTS; at < count; at += THREADS * LANE_ELEMENTS) {{
      *(uint4*)(products + at) = *(const uint4*)(from + begin + at);
    }}
    __syncthreads();
    for (int column = warp_of_thread() * COUNT; column < count; column += WARPS * COUNT) {{
      epilogue_row(here, row, begin + column, COUNT, products + column);
    }}
    __syncthreads();
  }}
  unsigned char* codes = (unsigned char*)args.buffers[{output}];
  round_row<WIDTH>(output, codes + row * WIDTH, (float*)(codes + scales_at(rows_of(args), WIDTH)) + row);
}}
)";

// Columns of a row's products that a block takes at once, beside its whole output: all that there
// is memory for, 0 if there is none. Halves of a row, which let more blocks share a multiprocessor,
// took 58 us where whole rows took 51 (docs/engine-figures.md).
int64_t columns_at_once(const ProductKernel& product) {
  constexpr int64_t kElementBytes = 2;
  const int64_t count = library_epilogue_columns(product.packing);
  const int64_t room = kFp8SharedBytes / kElementBytes - product.packing.segments[0];
  const int64_t all = tile_count(product.packing) * product.packing.tile;
  return std::min(all, std::max<int64_t>(room, 0) / count * count);
}

// The kernel's one output, of 16 bits, in rows of their own width, if that is all it writes.
std::optional<ir::BufferId> only_output(const Kernel& kernel) {
  std::optional<ir::BufferId> output;
  for (ir::BufferId id = 0; id < kernel.bound_buffers; ++id) {
    if (!kernel.buffers[id].writable) continue;
    if (output) return std::nullopt;
    output = id;
  }
  return output;
}

}  // namespace

std::optional<std::string> why_not_fp8(const Kernel& kernel, const ProductKernel& product) {
  if (!product.fp8) return "not asked for";
  if (product.rows.power(1) == 0 || kernel.dims.q_len == 1)
    return "not of all positions of a prompt";
  const int64_t outputs = tile_count(product.packing) * product.packing.tile;
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
  const auto output = only_output(first);
  if (!output || !multiplies_fp8(second, *reader) || writer->epilogues.size() != 1 ||
      writer->packing.segments[0] != reader->inputs || library_product(first, *writer).direct) {
    return false;
  }
  const DType type = first.buffers[writer->weight].dtype;
  return first.buffers[*output].dtype == type && columns_at_once(*writer) > 0 &&
         first.buffers[*output].dtype == second.buffers[reader->x].dtype;
}

ir::BufferId fp8_codes_buffer(const Kernel& kernel) {
  return *only_output(kernel);
}

std::string fp8_rounding_text() {
  return std::string(kFp8Rounding);
}

std::string fp8_prologue_text(const Kernel& kernel, const ProductKernel& product,
                              const std::string& row, const std::string& wide) {
  std::string body;
  if (wide.empty()) {
    body = fmt::format("  round_row<INPUTS>({} + {} * INPUTS, codes + {} * INPUTS, scale);\n",
                       kernel.buffers[product.x].name, row, row);
  } else {
    body = fmt::format(
        "  weight_t* __restrict__ to = (weight_t*)(codes + (at_scales + rows_of(args) * 4 + 255) / "
        "256 * 256) + {0} * INPUTS;\n{1}  __syncthreads();\n"
        "  round_row<INPUTS>(to, codes + {0} * INPUTS, scale);\n",
        row, wide);
  }
  return fmt::format(fmt::runtime(kFp8Prologue), fmt::arg("row", row),
                     fmt::arg("body", cuda_arguments(kernel) + body));
}

std::string fp8_epilogue_text(const Kernel& kernel, const ProductKernel& product) {
  return fmt::format(fmt::runtime(kFp8Epilogue),
                     fmt::arg("columns", tile_count(product.packing) * product.packing.tile),
                     fmt::arg("width", product.packing.segments[0]),
                     fmt::arg("output", *only_output(kernel)),
                     fmt::arg("count", library_epilogue_columns(product.packing)),
                     fmt::arg("part", columns_at_once(product)));
}

std::string print_fp8_weight(DType dtype, int64_t inputs) {
  return cuda_prelude() + cuda_widen_text(dtype) + fp8_rounding_text() +
         fmt::format(fmt::runtime(kFp8Weight), fmt::arg("inputs", inputs));
}

}  // namespace assay::engine
