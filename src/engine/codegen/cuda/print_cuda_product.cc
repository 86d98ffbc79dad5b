// Products on CUDA: a block takes a tile of the packed weight and a slice of the inputs, for a few
// rows; whichever block of a tile comes last adds the slices up and runs the epilogue.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "engine/codegen/cuda/cuda_target.h"
#include "engine/codegen/cuda/library_product.h"
#include "engine/codegen/cuda/print_cuda.h"

namespace assay::engine {
namespace {

// A thread loads 16 bytes: neighbours in a row of the panel's memory (ABREAST inputs of VECTOR
// columns), so that a warp reads whole rows, one behind the other. Sums of the warps meet in shared
// memory, in a fixed order.
constexpr std::string_view kTileProduct = R"(
enum { PANEL = 64, PADDED_INPUTS = (INPUTS + 15) / 16 * 16, LOADED = 16 / sizeof(weight_t), VECTOR = LOADED / ABREAST, ACROSS = PANEL / VECTOR,
       DOWN = 32 / ACROSS };

__device__ __forceinline__ void load_vector(const float* p, float* out) {
  const float4 v = *(const float4*)p;
  out[0] = v.x, out[1] = v.y, out[2] = v.z, out[3] = v.w;
}
__device__ __forceinline__ void load_vector(const unsigned short* p, float* out) {
  const uint4 v = *(const uint4*)p;
  const unsigned words[4] = {v.x, v.y, v.z, v.w};
  #pragma unroll
  for (int i = 0; i < 4; ++i) {
    out[2 * i] = widen((unsigned short)(words[i] & 0xffffu));
    out[2 * i + 1] = widen((unsigned short)(words[i] >> 16));
  }
}

// tile [R, TILE] = x [R, SLICE] . rows [begin, begin + count) of the tile's panels.
template <int R>
__device__ __forceinline__ void tile_product(const weight_t* w, long begin, int count,
                                             const float* x, float* partial, float* tile) {
  const int lane = lane_of_thread(), warp = warp_of_thread();
  const int column = lane % ACROSS * VECTOR;
  for (int panel = 0; panel < TILE; panel += PANEL, w += PANEL * PADDED_INPUTS) {
    float sums[R][VECTOR] = {};
    #pragma unroll (R > 2 ? 2 : 4)
    for (int i = (warp * DOWN + lane / ACROSS) * ABREAST; i < count; i += WARPS * DOWN * ABREAST) {
      float weights[LOADED];
      load_vector(w + (begin + i) * PANEL + column * ABREAST, weights);
      #pragma unroll
      for (int a = 0; a < ABREAST; ++a) {
        if (INPUTS % ABREAST != 0 && i + a >= count) break;
        #pragma unroll
        for (int r = 0; r < R; ++r) {
          const float scale = x[r * SLICE + i + a];
          #pragma unroll
          for (int c = 0; c < VECTOR; ++c) sums[r][c] += scale * weights[c * ABREAST + a];
        }
      }
    }
    #pragma unroll
    for (int r = 0; r < R; ++r) {
      #pragma unroll
      for (int c = 0; c < VECTOR; ++c) {
        #pragma unroll
        for (int offset = ACROSS; offset < 32; offset *= 2) {
          sums[r][c] += __shfl_xor_sync(~0u, sums[r][c], offset);
        }
        if (lane < ACROSS) partial[(warp * R + r) * PANEL + column + c] = sums[r][c];
      }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < R * PANEL; i += THREADS) {
      float sum = 0.0f;
      #pragma unroll
      for (int k = 0; k < WARPS; ++k) sum += partial[k * R * PANEL + i];
      tile[i / PANEL * TILE + panel + i % PANEL] = sum;
    }
    __syncthreads();
  }
}

// Whether all other blocks of this counter have been here; what they wrote before is seen then.
__device__ __forceinline__ bool is_last(int* counter, int blocks) {
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    last = atomicAdd(counter, 1) == blocks - 1;
    if (last) *counter = 0;
  }
  __syncthreads();
  __threadfence();
  return last;
}
)";

// Around {0}, the weight.
constexpr std::string_view kRun = R"(
__device__ __forceinline__ void epilogue_rows(const Args& args, long first, int count, long index,
                                              const float* tile) {
  for (int r = warp_of_thread(); r < count; r += WARPS) epilogue_row(args, first + r, index, tile + r * TILE);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) assay_run(const Args args) {
  __shared__ float x[ROWS * SLICE], partial[WARPS * ROWS * PANEL], tile[ROWS * TILE];
  const long rows = rows_of(args), index = blockIdx.x, split = blockIdx.y;
  const long begin = split * SLICE, left = INPUTS - begin;
  const int count = left < SLICE ? (int)left : SLICE;
  const weight_t* weight = (const weight_t*)args.buffers[WEIGHT] + index * TILE * PADDED_INPUTS;
  float* parts = args.workspace + COUNTERS;
  for (long first = 0; first < rows; first += ROWS) {
    const int here = rows - first < ROWS ? (int)(rows - first) : ROWS;
    for (int r = 0; r < here; ++r) inputs_row(args, first + r, begin, begin + count, x + r * SLICE - begin);
    __syncthreads();
    if (ROWS == 1 || here == 1) tile_product<1>(weight, begin, count, x, partial, tile);
    else tile_product<ROWS>(weight, begin, count, x, partial, tile);
    if (SPLITS == 1) {
      epilogue_rows(args, first, here, index, tile);
    } else {
      for (int i = threadIdx.x; i < here * TILE; i += THREADS) {
        parts[(((first + i / TILE) * TILES + index) * SPLITS + split) * TILE + i % TILE] = tile[i];
      }
    }
    __syncthreads();
  }
  if (SPLITS == 1 || !is_last((int*)args.workspace + index, SPLITS)) return;
  for (long first = 0; first < rows; first += ROWS) {
    const int here = rows - first < ROWS ? (int)(rows - first) : ROWS;
    for (int i = threadIdx.x; i < here * TILE; i += THREADS) {
      const float* from = parts + ((first + i / TILE) * TILES + index) * SPLITS * TILE + i % TILE;
      float sum = 0.0f;
      for (int k = 0; k < SPLITS; ++k) sum += __ldcg(from + k * TILE);
      tile[i] = sum;
    }
    __syncthreads();
    epilogue_rows(args, first, here, index, tile);
    __syncthreads();
  }
}
)";

int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

std::string sizes_text(const Kernel& kernel, const ProductKernel& product) {
  const CudaProductShape shape = cuda_product_shape(kernel, product);
  const DType dtype = kernel.buffers[product.weight].dtype;
  return fmt::format(
      "\ntypedef {} weight_t;\n"
      "enum {{ INPUTS = {}, ABREAST = {}, TILE = {}, TILES = {}, ROWS = {}, SPLITS = {}, SLICE = "
      "{},\n"
      "       WEIGHT = {}, COUNTERS = {} }};\n"
      "__device__ __forceinline__ float widen(unsigned short x) {{ return {}(x); }}\n",
      element_type(dtype, "unsigned short"), product.inputs, Packing::abreast(dtype),
      product.packing.tile, tile_count(product.packing), shape.rows, shape.splits, shape.slice,
      product.weight, kCudaCounters, dtype == DType::kF16 ? "from_f16" : "from_bf16");
}

std::string rows_text(const Kernel& kernel, const ProductKernel& product) {
  return "\n__device__ __forceinline__ long rows_of(const Args& args) {\n" +
         cuda_arguments(kernel) + fmt::format("  return {};\n}}\n", dim_text(product.rows));
}

// The inputs [begin, end) of a row into x, at their own index.
std::string inputs_text(const Kernel& kernel, const ProductKernel& product) {
  const KernelBuffer& x = kernel.buffers[product.x];
  const std::string row = CPrinter::var_name(product.row);
  std::string text = fmt::format(
      "\n__device__ __forceinline__ void inputs_row(const Args& args, long {}, long begin, long "
      "end,\n                                           float* to) {{\n",
      row);
  text += cuda_arguments(kernel);
  if (!product.has_prologue) {
    return text + fmt::format(
                      "  for (long i = begin + threadIdx.x; i < end; i += THREADS) to[i] = "
                      "{}({}[{} * INPUTS + i]);\n}}\n",
                      x.dtype == DType::kF32 ? "" : "widen", x.name, row);
  }
  CPrinter printer(kernel, cuda_slice_target());
  printer.define(product.row);
  return text + fmt::format("  float* {} = to;\n", x.name) + printer.block(product.prologue, 1) +
         "}\n";
}

// By one warp, for the tile's row of products.
std::string epilogue_text(const Kernel& kernel, const ProductKernel& product) {
  return fmt::format(
             "\n__device__ __forceinline__ void epilogue_row(const Args& args, long {}, long "
             "index,\n                                             const float* {}) {{\n",
             CPrinter::var_name(product.row), kernel.buffers[product.tile].name) +
         cuda_arguments(kernel) + print_epilogues(kernel, product, cuda_warp_target()) + "}\n";
}

// What a run has at least of rows, where the kernel is specialised on it.
std::optional<int64_t> known_rows(const Kernel& kernel, const Dim& rows) {
  const Specialization& dims = kernel.dims;
  if ((rows.power(0) > 0 && !dims.batch) || (rows.power(1) > 0 && !dims.q_len) ||
      (rows.power(2) > 0 && !dims.kv_len)) {
    return std::nullopt;
  }
  return rows.value({dims.batch.value_or(1), dims.q_len.value_or(1), dims.kv_len.value_or(1)});
}

}  // namespace

// Shared memory that needs no opting in holds, for 8 rows, slices of 512 inputs and tiles of 256
// columns. Slices are cut further until there are two blocks for each multiprocessor of the largest
// target, down to 64 inputs.
CudaProductShape cuda_product_shape(const Kernel& kernel, const ProductKernel& product) {
  constexpr int64_t kMostInputs = 4096, kMostColumns = 2048, kFewestInputs = 64;
  constexpr int64_t kWantedBlocks = 2 * 132;
  const int64_t tiles = tile_count(product.packing);
  CudaProductShape shape;
  shape.rows =
      std::clamp<int64_t>(known_rows(kernel, product.rows).value_or(kProductRows), 1, kProductRows);
  shape.rows = std::clamp<int64_t>(kMostColumns / product.packing.tile, 1, shape.rows);
  int64_t splits = std::min(ceil_div(kWantedBlocks, tiles), product.inputs / kFewestInputs);
  splits = std::max({splits, ceil_div(product.inputs, kMostInputs / shape.rows), int64_t{1}});
  shape.slice =
      ceil_div(ceil_div(product.inputs, splits), Packing::kPanelInputs) * Packing::kPanelInputs;
  shape.splits = ceil_div(product.inputs, shape.slice);
  return shape;
}

std::string print_cuda_product(const Kernel& kernel, const ProductKernel& product) {
  std::string text(kCudaPrelude);
  text += cuda_args_struct(kernel);
  text += sizes_text(kernel, product);
  text += kTileProduct;
  text += rows_text(kernel, product);
  text += inputs_text(kernel, product);
  text += epilogue_text(kernel, product);
  text += kRun;
  if (may_have_many_rows(kernel, product)) text += print_library_entries(kernel, product);
  return text;
}

}  // namespace assay::engine
