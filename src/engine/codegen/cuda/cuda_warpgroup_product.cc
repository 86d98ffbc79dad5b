// Products of some dozens of rows on GPUs that multiply by warpgroups (sm_90a): weights are the
// left operand, 64 columns of them, and stream through shared memory beside the rows.
#include <fmt/format.h>

#include <string_view>

#include "engine/codegen/cuda/cuda_attention.h"
#include "engine/codegen/cuda/cuda_tensor_product.h"
#include "engine/codegen/cuda/library_product.h"
#include "engine/codegen/cuda/print_cuda.h"

namespace assay::engine {
namespace {

// A stage of the ring has 64 inputs of 64 columns, and of the rows: lines of 128 bytes in wgmma's
// swizzle of 128 bytes, in which the 16 bytes `piece` of line r are at piece ^ r % 8. The first
// warpgroup multiplies, the second copies weights, and LOADERS warps behind it copy x. Weights are
// asked for before the kernels ahead have ended, as many as the ring has room for.
constexpr std::string_view kStagedColumns = R"(
__device__ __forceinline__ void ask(unsigned to, const weight_t* from, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(to), "l"(from), "r"(bytes) : "memory");
}
// Arrives once all copies that this thread has asked for are there.
__device__ __forceinline__ void arrive_behind_copies(unsigned barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" :: "r"(barrier) : "memory");
}
// Waits until a stage may be filled for the turn-th time.
__device__ __forceinline__ void await_room(unsigned shared, int stage, int turn) {
  if (turn > 0) await(empty(shared, stage), turn - 1);
}

__device__ __forceinline__ void load_weights(unsigned shared, const weight_t* from, int count) {
  const int line = warp_of_thread() % 4 * 16 + lane_of_thread() / 8, piece = lane_of_thread() % 8;
  from += (long)line * PITCH + piece * 8;
  for (int i = 0; i < count; ++i, from += RUN) {
    await_room(shared, i % STAGES, i / STAGES);
    #pragma unroll
    for (int at = 0; at < 16; at += 4) {
      ask(shared + i % STAGES * STAGE_BYTES + (line + at) * 128 + (piece ^ (line + at) % 8) * 16, from + at * PITCH, 16);
    }
    arrive_behind_copies(full(shared, i % STAGES));
  }
}
// Rows behind the last are zeros.
__device__ __forceinline__ void load_rows(unsigned shared, const weight_t* from, int count, int rows) {
  const int line = (warp_of_thread() - 8) * 4 + lane_of_thread() / 8, piece = lane_of_thread() % 8;
  for (int i = 0; i < count; ++i, from += RUN) {
    await_room(shared, i % STAGES, i / STAGES);
    const unsigned to = shared + i % STAGES * STAGE_BYTES + COLUMN_BYTES;
    #pragma unroll
    for (int at = 0; at < ROWS; at += 4 * LOADERS) {
      const int row = line + at;
      const bool there = row < rows;
      ask(to + row * 128 + (piece ^ row % 8) * 16, from + (there ? (long)row * PITCH + piece * 8 : 0), there ? 16 : 0);
    }
    arrive_behind_copies(full(shared, i % STAGES));
  }
}
// A thread's sums are those of columns `lane / 4` and 8 more of its warp's 16, for two of each
// eight rows.
__device__ __forceinline__ void multiply_stages(unsigned shared, int count, float (&sums)[OWN]) {
  for (int i = 0; i < count; ++i) {
    const unsigned stage = shared + i % STAGES * STAGE_BYTES;
    await(full(shared, i % STAGES), i / STAGES);
    show_to_products();
    begin_products();
    #pragma unroll
    for (int k = 0; k < RUN / 16; ++k) {
      multiply_wide<1>(sums, matrix_at(stage + k * 32), matrix_at(stage + COLUMN_BYTES + k * 32));
    }
    end_products();
    if (i == 0) continue;
    await_products<1>(sums);
    if (lane_of_thread() == 0) arrive(empty(shared, (i - 1) % STAGES));
  }
  await_products<0>(sums);
}
// Adds up what the blocks that share columns have summed, in the last of them; false in the others.
__device__ __forceinline__ bool add_splits(const Args& args, float (&sums)[OWN]) {
  float* words = args.workspace - (long)(gridDim.x - blockIdx.x) * SPLITS * ROWS * GRAIN + threadIdx.x;
  const bool multiplies = threadIdx.x < 128;
  #pragma unroll
  for (int i = 0; i < OWN; ++i) {
    if (multiplies) leave(words + (blockIdx.y * OWN + i) * 128, sums[i]);
  }
  if (blockIdx.y < SPLITS - 1) return false;
  if (!multiplies) return true;
  #pragma unroll
  for (int s = 0; s < SPLITS; ++s) {
    float found[OWN];
    take([&](int i) { return words + (s * OWN + i) * 128; }, found);
    #pragma unroll
    for (int i = 0; i < OWN; ++i) sums[i] = (s == 0 ? 0.0f : sums[i]) + found[i];
  }
  return true;
}

extern "C" __global__ void __launch_bounds__(THREADS, 2) assay_run(const Args args) {
  const unsigned begin = (unsigned)__cvta_generic_to_shared(ring), shared = (begin + 1023) & ~1023u;
  let_next_begin();
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < STAGES; ++stage) {
      make_barrier(full(shared, stage), THREADS - 128);
      make_barrier(empty(shared, stage), 4);
    }
  }
  __syncthreads();
  const int warp = __shfl_sync(~0u, warp_of_thread(), 0);
  const int first = (int)(RUNS * blockIdx.y / SPLITS), count = (int)(RUNS * (blockIdx.y + 1) / SPLITS) - first;
  const long column = (long)blockIdx.x * GRAIN;
  float sums[OWN] = {};
  if (warp >= 8) {
    wait_for_kernels_ahead();
    load_rows(shared, rows_to_multiply(args) + first * RUN, count, (int)rows_of(args));
  } else if (warp >= 4) {
    load_weights(shared, (const weight_t*)args.buffers[WEIGHT] + column * PITCH + first * RUN, count);
    wait_for_kernels_ahead();
  } else {
    multiply_stages(shared, count, sums);
    wait_for_kernels_ahead();
  }
  if (SPLITS > 1 && !add_splits(args, sums)) return;
  __syncthreads();  // none reads the ring any more
  float* const parts = (float*)((unsigned char*)ring + (shared - begin));
  #pragma unroll
  for (int i = 0; i < OWN; ++i) {
    const int row = i / 4 * 8 + lane_of_thread() % 4 * 2 + i % 2;
    if (warp < 4) parts[row * PART_PITCH + warp * 16 + lane_of_thread() / 4 + i % 4 / 2 * 8] = sums[i];
  }
  __syncthreads();
  const int rows = (int)rows_of(args);
  for (int task = threadIdx.x / EPILOGUE_LANES; task < rows * (GRAIN / ROUND); task += THREADS / EPILOGUE_LANES) {
    const int row = task / (GRAIN / ROUND), at = task % (GRAIN / ROUND) * ROUND;
    epilogue_row(args, row, column + at, ROUND, parts + row * PART_PITCH + at);
  }
}
)";

}  // namespace

std::string cuda_warpgroup_constants(const CudaProductShape& shape, const ProductKernel& product) {
  const int64_t pitch = Packing::padded_inputs(product.inputs);
  return fmt::format(
      "\nenum {{ GRAIN = {}, RUN = {}, RUNS = {}, STAGES = {}, SPLITS = {}, LOADERS = {}, ROUND = "
      "{}, "
      "PART_PITCH = GRAIN + 4,\n       RING_BYTES = {}, X_AT = {}, WHOLE = 1,\n       COLUMN_BYTES "
      "= GRAIN * 128, STAGE_BYTES = COLUMN_BYTES + ROWS * 128, "
      "BARRIERS_AT = "
      "RING_BYTES, OWN = ROWS / 2 }};\n",
      shape.columns, kCudaTensorRun, pitch / kCudaTensorRun, shape.laps, shape.splits,
      shape.threads / 32 - 8, cuda_task_columns(shape.rows), cuda_warpgroup_ring_bytes(shape),
      kCudaCounters);
}

std::string cuda_warpgroup_run(const Kernel& kernel, const ProductKernel& product,
                               const CudaProductShape& shape) {
  const bool f16 = kernel.buffers[product.weight].dtype == DType::kF16;
  const bool prologue = library_product(kernel, product).prologue;
  return (prologue ? print_library_prologue(kernel, product) : "") +
         fmt::format(
             "\n__device__ __forceinline__ const weight_t* rows_to_multiply(const Args& args) {{\n"
             "  return (const weight_t*){};\n}}\n",
             prologue ? std::string("(args.workspace + X_AT)")
                      : fmt::format("args.buffers[{}]", product.x)) +
         cuda_barrier_text() + cuda_warpgroup_product_text(f16 ? "f16" : "bf16", shape.rows) +
         cuda_stages_text() + std::string(kStagedColumns);
}

}  // namespace assay::engine
