// A warp copies into its own places of the ring and reads no others: no warp waits for another
// before a block's columns are summed.
#include "engine/codegen/cuda/cuda_tensor_product.h"

#include <fmt/format.h>

#include <string_view>

#include "engine/codegen/cuda/block_slots.h"
#include "engine/codegen/cuda/print_cuda.h"

namespace assay::engine {
namespace {

constexpr std::string_view kCopies = R"(
extern __shared__ uint4 ring[];  // by slot and warp

// Copies of a thread end in their order; each slot's are one group, even if there are none.
__device__ __forceinline__ void ask(uint4* place, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
               :: "r"((unsigned)__cvta_generic_to_shared(place)), "l"(from) : "memory");
}
__device__ __forceinline__ void end_slot() { asm volatile("cp.async.commit_group;" ::: "memory"); }
)";

constexpr std::string_view kRing = R"(
__device__ __forceinline__ void wait_for_oldest_slot() {
  asm volatile("cp.async.wait_group %0;" :: "n"(DEPTH - 1) : "memory");
}
// Where a block's columns begin.
__device__ __forceinline__ int share_of(unsigned block) {
  return (int)((unsigned)(COLUMNS / GRAIN) * block / BLOCKS) * GRAIN;
}

// Sums by row and column of up to ROUND columns, before they are summed over warps and splits.
struct Parts {
  float sums[WARPS][ROWS * ROW_PITCH], squares[WARPS][ROWS];
};
// The first of the block's rows.
__device__ __forceinline__ int first_row() { return SEVERAL ? (int)blockIdx.z * ROWS : 0; }
// Each split leaves words: its sums [ROWS, COLUMNS], by the first row, and behind all of them its squares.
__device__ __forceinline__ float* split_sums(const Args& args, int split, int row) {
  const long rows = SPLITS * ROWS * (SEVERAL ? (long)gridDim.z : 1);
  return args.workspace - rows * (COLUMNS + BLOCKS) + (long)(first_row() * SPLITS + split * ROWS + row) * COLUMNS;
}
__device__ __forceinline__ float* split_squares(const Args& args, int split) {
  const long rows = SPLITS * ROWS * (SEVERAL ? (long)gridDim.z : 1);
  return args.workspace - rows * BLOCKS + ((first_row() / ROWS * BLOCKS + blockIdx.x) * SPLITS + split) * ROWS;
}
// What a norm multiplies a row's products by.
__device__ __forceinline__ float scale_of(const Parts& parts, int row) {
  if (!NORMED) return 1.0f;
  float total = 0.0f;
  #pragma unroll
  for (int w = 0; w < (SPLITS == 1 ? (int)WARPS : 1); ++w) total += parts.squares[w][row];
  return 1.0f / sqrtf(total * (1.0f / INPUTS) + EPSILON);
}
)";

constexpr std::string_view kTensor = R"(
enum { PARTS = RUN / 32, STEADY_SCALES = NORMED && WHOLE_SCALES };
// A warp's pieces are RUN inputs each, one behind the other.
__device__ __forceinline__ int first_of(int piece) {
  return (blockIdx.y * SPLIT_PIECES + warp_of_thread() * PIECES + piece) * RUN;
}
// What a thread multiplies of a piece's part.
__device__ __forceinline__ int input_of(int piece, int part) {
  return first_of(piece) + part * 32 + lane_of_thread() % 4 * (APART ? 4 : VECTOR);
}
__device__ __forceinline__ bool is_there(int piece, int input) {
  return WHOLE || (warp_of_thread() * PIECES + piece < SPLIT_PIECES && input < PITCH);
}
)";

// Weights of 16 bits are the left operand of mma.m16n8k16, 16 columns of them, and up to 8 rows of
// x the right one. Which of 32 inputs stands where in k is free as long as both sides agree: a
// thread's place in the fragments, k = 2q, 2q + 1, 2q + 8, 2q + 9 of two of them, has the inputs 8q
// to 8q + 7, which lie side by side. x is the sum of two values of the weight's type, so that 16
// bits of bf16 or 22 of fp16 are left of an input; of more than 8 rows it is one, as a library has
// it. In fp16 an input beyond 65504 makes its row's products NaN. A copy of a warp reads four
// columns' RUN inputs, 128 bytes each: whole lines, without which an H200 reads a quarter slower.
constexpr std::string_view kWideSlots = R"(
// x stands in GROUPS of 8 rows. READY: it lies in memory as it is multiplied.
struct Fragment { unsigned high[4], low[4]; };
// x times the norm's weight in the weight's type, and the sum of its squares.
__device__ __forceinline__ void pack_part(float (&x)[VECTOR], const float (&scale)[VECTOR], float& square, Fragment& to) {
  #pragma unroll
  for (int v = 0; v < VECTOR; ++v) {
    if (NORMED) square += x[v] * x[v], x[v] *= scale[v];
  }
  #pragma unroll
  for (int w = 0; w < 4; ++w) {
    const unsigned high = to.high[w] = pack(x[2 * w], x[2 * w + 1]);
    if (!PRECISE) continue;
    to.low[w] = pack(x[2 * w] - from_half_word((unsigned short)(high & 0xffffu)),
                     x[2 * w + 1] - from_half_word((unsigned short)(high >> 16)));
  }
}
template <typename T>
__device__ __forceinline__ void take_inputs(const T* from, bool there, Fragment& to) {
  const uint4 v = there ? *(const uint4*)from : make_uint4(0, 0, 0, 0);
  to.high[0] = v.x, to.high[1] = v.y, to.high[2] = v.z, to.high[3] = v.w;
}
// A piece's slot of 16 columns: CHUNKS of 16 bytes of a column, in COPIES.
enum { CHUNKS = RUN / 8, SLOT = GRAIN * CHUNKS, COPIES = SLOT / 32, COLUMNS_A_COPY = 32 / CHUNKS, STEP = GRAIN * PITCH };
typedef weight_t slot_t;
// 16 columns' weights of 32 inputs.
__device__ __forceinline__ void multiply_part(float (&sum)[4], const uint4& a, const uint4& b, const unsigned (&x)[4]) {
  const unsigned first[4] = {a.x, b.x, a.y, b.y}, second[4] = {a.z, b.z, a.w, b.w};
  multiply(sum, first, x[0], x[1]);
  multiply(sum, second, x[2], x[3]);
}
// Where 16 bytes of a column lie in a slot: eight lanes that read two columns meet all banks.
__device__ __forceinline__ int place_of(int column, int chunk) {
  return column * CHUNKS + (chunk ^ column % 2 * 4);
}
// Reads the weights that a thread multiplies of 16 columns of a piece's part.
__device__ __forceinline__ void read_part(const uint4* slot, int piece, int part, uint4& a, uint4& b) {
  const int chunk = part * 4 + lane_of_thread() % 4;
  const bool there = is_there(piece, input_of(piece, part));
  a = there ? slot[place_of(lane_of_thread() / 4, chunk)] : make_uint4(0, 0, 0, 0);
  b = there ? slot[place_of(lane_of_thread() / 4 + 8, chunk)] : make_uint4(0, 0, 0, 0);
}
// A slot's 16 columns from `from`, unless they are behind the block's last.
__device__ __forceinline__ void ask_slot(uint4* slot, const weight_t* from, int piece, bool more) {
  const int column = lane_of_thread() / CHUNKS, chunk = lane_of_thread() % CHUNKS;
  if (more && is_there(piece, first_of(piece) + chunk * 8)) {
    #pragma unroll
    for (int i = 0; i < COPIES; ++i) {
      ask(slot + place_of(i * COLUMNS_A_COPY + column, chunk), from + piece * RUN + (long)i * COLUMNS_A_COPY * PITCH);
    }
  }
  end_slot();
}

// The lane copies from here on, beginning with the block's column `begin`.
__device__ __forceinline__ const slot_t* slots_of(const Args& args, int begin) {
  const int lane = lane_of_thread();
  return (const weight_t*)args.buffers[WEIGHT] + (long)(begin + lane / CHUNKS) * PITCH + first_of(0) + lane % CHUNKS * 8;
}
struct InputSums {};
__device__ __forceinline__ void sum_inputs(const Fragment (&)[GROUPS][PIECES * PARTS], InputSums&) {}
// A piece of 16 columns; its slot is asked for anew when it has been read.
__device__ __forceinline__ void run_slot(uint4* slot, const slot_t* upcoming, int p, bool more, const Fragment (&x)[GROUPS][PIECES * PARTS],
                                         const InputSums&, float (&high)[GROUPS][4], float (&low)[4]) {
  uint4 a[PARTS], b[PARTS];
  #pragma unroll
  for (int i = 0; i < PARTS; ++i) read_part(slot, p, i, a[i], b[i]);
  __syncwarp();  // all lanes have read
  ask_slot(slot, upcoming, p, more);
  #pragma unroll
  for (int i = 0; i < PARTS; ++i) {
    #pragma unroll
    for (int g = 0; g < GROUPS; ++g) multiply_part(high[g], a[i], b[i], x[g][p * PARTS + i].high);
    if (PRECISE) multiply_part(low, a[i], b[i], x[0][p * PARTS + i].low);
  }
}
)";

constexpr std::string_view kLoadRows = R"(
__device__ __forceinline__ void load_rows(const Args& args, const Inputs& in, int rows, const uint4* scales, Fragment (&x)[GROUPS][PIECES * PARTS],
                                          float (&square)[GROUPS], InputSums& sums) {
  const int lane = lane_of_thread();
  float own[PIECES * PARTS][GROUPS][VECTOR];  // all of them are asked for before any is used
  #pragma unroll
  for (int i = 0; i < PIECES * PARTS * GROUPS; ++i) {
    const int p = i / GROUPS, g = i % GROUPS, row = g * 8 + lane / 4, at = input_of(p / PARTS, p % PARTS);
    const auto* from = row_of(args, in, first_row(), row < rows ? row : 0);  // nobody asks for the sums of another
    if (READY) take_inputs(from + at, is_there(p / PARTS, at) && at < INPUTS, x[g][p]);
    else load_inputs(args, from, is_there(p / PARTS, at) ? at : PITCH, own[p][g]);
  }
  #pragma unroll
  for (int p = 0; p < PIECES * PARTS; ++p) {
    if (READY) continue;
    float scale[VECTOR];
    if (STEADY_SCALES) widen(scales[p], scale);
    else if (NORMED) load_scales(args, input_of(p / PARTS, p % PARTS), scale);
    #pragma unroll
    for (int g = 0; g < GROUPS; ++g) pack_part(own[p][g], scale, square[g], x[g][p]);
  }
  sum_inputs(x, sums);
}
)";

constexpr std::string_view kTensorRun = R"(
// The ring has room for LAPS times 16 columns, so that a piece's slots are known when this is
// compiled, and sums stand behind it.
extern "C" __global__ void BOUNDS assay_run(const Args args) {
  __shared__ Inputs in;
  Parts& parts = *(Parts*)(ring + LAPS * PIECES * WARPS * SLOT);
  const int begin = share_of(blockIdx.x), end = share_of(blockIdx.x + 1);
  const int lane = lane_of_thread(), warp = warp_of_thread(), split = blockIdx.y;
  const slot_t* upcoming = slots_of(args, begin);
  uint4* const own_slots = ring + warp * SLOT;
  let_next_begin();
  uint4 scales[STEADY_SCALES ? PIECES * PARTS : 1];  // asked for ahead of the ring, whose copies all later reads wait behind
  #pragma unroll
  for (int i = 0; i < PIECES * PARTS; ++i) {
    if (STEADY_SCALES) scales[STEADY_SCALES ? i : 0] = whole_scales(args, input_of(i / PARTS, i % PARTS));
  }
  #pragma unroll
  for (int i = 0; i < LAPS; ++i, upcoming += STEP) {
    #pragma unroll
    for (int p = 0; p < PIECES; ++p) {
      ask_slot(own_slots + (i * PIECES + p) * WARPS * SLOT, upcoming, p, begin + i * GRAIN < end);
    }
  }
  const int behind = begin + LAPS * GRAIN;  // the first column that the ring hasn't asked for
  bring_near((const weight_t*)args.buffers[WEIGHT] + (long)behind * PITCH, (end - behind) * PITCH);
  const int left = (int)rows_of(args) - first_row(), rows = SEVERAL && left > ROWS ? ROWS : left;
  const int round_end = end - begin < ROUND ? end : begin + ROUND;
  Asking asking;
  if (SPLITS == 1 && READS_STEADY) ask_ahead(args, parts, begin, round_end, rows, asking);
  wait_for_kernels_ahead();
  if (SPLITS == 1 && !READS_STEADY) ask_ahead(args, parts, begin, round_end, rows, asking);
  prepare_inputs(args, in, first_row(), rows);
  __shared__ InputSums all_sums[WARPS];
  InputSums& sums = all_sums[warp];
  Fragment x[GROUPS][PIECES * PARTS];
  float square[GROUPS] = {};
  load_rows(args, in, rows, scales, x, square, sums);
  #pragma unroll
  for (int g = 0; g < GROUPS; ++g) {
    if (!NORMED) continue;
    square[g] += __shfl_xor_sync(~0u, square[g], 1);
    square[g] += __shfl_xor_sync(~0u, square[g], 2);
    const int row = g * 8 + lane / 4;
    if (lane % 4 == 0 && row < ROWS) parts.squares[warp][row] = square[g];
  }
  int lap = 0;
  for (int first = begin; first < end; first += ROUND) {
    const int last = end - first < ROUND ? end : first + ROUND;
    if (SPLITS == 1 && first > begin) ask_ahead(args, parts, first, last, rows, asking);
    for (int column = first; column < last; column += GRAIN, upcoming += STEP) {
      float high[GROUPS][4] = {}, low[4] = {};
      const bool more = column + LAPS * GRAIN < end;
      uint4* const slots = own_slots + lap * PIECES * WARPS * SLOT;
      #pragma unroll
      for (int p = 0; p < PIECES; ++p) {
        wait_for_oldest_slot();
        __syncwarp();  // what other lanes have copied
        run_slot(slots + p * WARPS * SLOT, upcoming, p, more, x, sums, high, low);
      }
      lap = lap + 1 == LAPS ? 0 : lap + 1;
      const int at = column - first + lane / 4;
      #pragma unroll
      for (int i = 0; i < GROUPS * 4; ++i) {
        const int of = i / 4 * 8 + lane % 4 * 2 + i % 2;
        const float sum = high[i / 4][i % 4] + (PRECISE ? low[i % 4] : 0.0f);
        if (of < ROWS) parts.sums[warp][of * ROW_PITCH + at + i % 4 / 2 * 8] = sum;
      }
    }
    __syncthreads();
    if (SPLITS == 1) {
      finish(args, parts, first, last, rows, asking);
    } else {
      for (int i = threadIdx.x; i < ROWS * ROUND; i += THREADS) {
        const int of = i / ROUND, at = i % ROUND;
        if (of >= rows || first + at >= last) continue;
        float total = 0.0f;
        #pragma unroll
        for (int w = 0; w < WARPS; ++w) total += parts.sums[w][of * ROW_PITCH + at];
        leave(split_sums(args, split, of) + first + at, total);
      }
    }
    __syncthreads();  // all have read, before the next round writes
  }
  if (SPLITS == 1) return;
  if (NORMED && threadIdx.x < ROWS) {
    float total = 0.0f;
    #pragma unroll
    for (int w = 0; w < WARPS; ++w) total += parts.squares[w][threadIdx.x];
    leave(split_squares(args, split) + threadIdx.x, total);
  }
  if (split < SPLITS - 1) return;
  ask_ahead(args, parts, begin, end, rows, asking);
  if (NORMED) {
    if (threadIdx.x < ROWS) parts.squares[0][threadIdx.x] = take_sum<SPLITS>(split_squares(args, 0) + threadIdx.x, ROWS);
    __syncthreads();
  }
  finish(args, parts, begin, end, rows, asking);
}
)";

}  // namespace

std::string cuda_tensor_constants(const CudaProductShape& shape, const Kernel& kernel,
                                  const ProductKernel& product) {
  const DType weight = kernel.buffers[product.weight].dtype;
  const std::string element = cuda_tensor_text(weight == DType::kF16 ? "f16" : "bf16");
  if (shape.form == CudaProductForm::kOneRow) {
    return fmt::format(
               "\nenum {{ PIECES = {}, WHOLE = 0, COLUMNS = {}, LAPS = {}, BLOCKS = {}, "
               "TURNS = {}, EVEN = {} }};\n",
               shape.pieces, packed_columns(product.packing), shape.laps, shape.blocks, shape.turns,
               shape.threads / 32 * shape.pieces == CudaSlot::count(product.inputs) ? 1 : 0) +
           cuda_bounds_text(fmt::format("THREADS, {}", shape.together), shape.registers) + element;
  }
  const int64_t columns = packed_columns(product.packing);
  const bool in_blocks = kernel.buffers[product.weight].blocks.has_value();
  const int64_t run = in_blocks ? CudaSlot::kInputs : kCudaTensorRun;
  const int64_t pitch = Packing::padded_inputs(product.inputs), runs = (pitch + run - 1) / run;
  const int64_t split_pieces = (runs + shape.splits - 1) / shape.splits;
  const bool whole = shape.threads / 32 * shape.pieces == split_pieces &&
                     split_pieces * shape.splits * run == pitch;
  const bool precise = shape.rows <= kProductRows;
  const bool ready = !precise && !in_blocks && !product.has_prologue && product.inputs % 8 == 0 &&
                     kernel.buffers[product.x].dtype == weight;
  return fmt::format(
             "\nenum {{ COLUMNS = {}, GRAIN = {}, BLOCKS = {}, PIECES = {}, LAPS = {},\n"
             "       DEPTH = LAPS * PIECES, SPLITS = {}, SPLIT_PIECES = {}, TASK = {}, ROUND = "
             "{},\n"
             "       WHOLE = {}, RUN = {}, GROUPS = (ROWS + 7) / 8, PRECISE = {},\n"
             "       READY = {}, ROW_PITCH = ROUND + {}, SEVERAL = {} }};\n",
             columns, shape.columns, shape.blocks, shape.pieces, shape.laps, shape.splits,
             split_pieces, cuda_task_columns(shape.rows), shape.round, whole ? 1 : 0, run,
             precise ? 1 : 0, ready ? 1 : 0, kCudaSumsPadding, in_blocks ? 1 : 0) +
         cuda_bounds_text(fmt::format("THREADS, {}", shape.together), shape.registers) + element;
}

std::string cuda_tensor_run(const CudaProductShape& shape, const Kernel& kernel,
                            const ProductKernel& product) {
  const auto& blocks = kernel.buffers[product.weight].blocks;
  if (blocks && shape.rows > kProductRows) {
    return std::string(kCopies) + std::string(kRing) + cuda_finish_text(shape) +
           std::string(kTensor) + cuda_block_values_text() + std::string(kTensorRun);
  }
  const std::string slots = blocks ? cuda_codes_text(blocks->format) : "";
  if (shape.form == CudaProductForm::kOneRow) {
    return std::string(kCopies) + slots + cuda_one_row_text();
  }
  return std::string(kCopies) + slots + std::string(kRing) + cuda_finish_text(shape) +
         std::string(kTensor) + (blocks ? cuda_block_slots_text() : std::string(kWideSlots)) +
         std::string(kLoadRows) + std::string(kTensorRun);
}

}  // namespace assay::engine
