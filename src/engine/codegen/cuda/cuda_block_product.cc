// Products of weights in blocks on tensor cores, which multiply codes as they are: what scales them
// comes behind, a cell of 32 inputs at a time.
#include <string>
#include <string_view>

#include "engine/codegen/cuda/cuda_tensor_product.h"

namespace assay::engine {
namespace {

// The part that every kernel of codes has.
constexpr std::string_view kCodes = R"(
__device__ __forceinline__ float sum_of_pair(unsigned pair) {
  return from_half_word((unsigned short)(pair & 0xffffu)) + from_half_word((unsigned short)(pair >> 16));
}
// Codes of a cell's first or second 16 inputs, of 16 columns.
__device__ __forceinline__ void multiply_half(float (&sum)[4], const unsigned (&a)[4], const unsigned (&b)[4], int half, const unsigned (&x)[4]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32." ELEMENT_TYPE "." ELEMENT_TYPE ".f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[2 * half]), "r"(b[2 * half]), "r"(a[2 * half + 1]), "r"(b[2 * half + 1]), "r"(x[2 * half]), "r"(x[2 * half + 1]));
}
)";

// Weights in blocks: a warp multiplies their codes, and scales the products of each cell.
constexpr std::string_view kBlockSlots = R"(
enum { SLOT = SLOT_BYTES / 16, STEP = SLOTS * SLOT_BYTES };
typedef char slot_t;
__device__ __forceinline__ const slot_t* slots_of(const Args& args, int begin) {
  return (const char*)args.buffers[WEIGHT] + (begin / GRAIN * (long)SLOTS + first_of(0) / RUN) * SLOT_BYTES + lane_of_thread() * 16;
}
__device__ __forceinline__ void ask_slot(uint4* slot, const slot_t* from, int piece, bool more) {
  if (more && is_there(piece, first_of(piece))) {
    #pragma unroll
    for (int i = 0; i < SLOT; i += 32) {
      if (i + lane_of_thread() < SLOT) ask(slot + i + lane_of_thread(), from + piece * SLOT_BYTES + i * 16);
    }
  }
  end_slot();
}
// Sums of the inputs that share a scale, of the rows whose products the lane has, by which a
// product has what is added to its weights.
struct InputSums { float of[GROUPS][PIECES * PARTS][HALVES][2]; };
__device__ __forceinline__ void sum_inputs(const Fragment (&x)[GROUPS][PIECES * PARTS], InputSums& sums) {
  #pragma unroll
  for (int i = 0; i < GROUPS * PIECES * PARTS * HALVES; ++i) {
    const int g = i / (PIECES * PARTS * HALVES), part = i / HALVES % (PIECES * PARTS), half = i % HALVES;
    float sum = 0.0f;
    #pragma unroll
    for (int w = 0; w < 4; ++w) {
      if (HALVES == 2 && w / 2 != half) continue;
      sum += sum_of_pair(x[g][part].high[w]);
      if (PRECISE) sum += sum_of_pair(x[g][part].low[w]);
    }
    sum += __shfl_xor_sync(~0u, sum, 1);
    sum += __shfl_xor_sync(~0u, sum, 2);
    #pragma unroll
    for (int j = 0; j < 2; ++j) sums.of[g][part][half][j] = __shfl_sync(~0u, sum, lane_of_thread() % 4 * 8 + j * 4);
  }
}
__device__ __forceinline__ void run_slot(uint4* slot, const slot_t* upcoming, int p, bool more, const Fragment (&x)[GROUPS][PIECES * PARTS],
                                         const InputSums& sums, float (&total)[GROUPS][4], float (&)[4]) {
  const char* from = (const char*)slot;
  const int lane = lane_of_thread();
  #pragma unroll
  for (int part = 0; part < PARTS; ++part) {
    if (!is_there(p, first_of(p) + part * 32)) break;  // of the whole warp
    CellCodes codes;
    cell_codes(from, part, lane, codes);
    CellScales scales[2];
    cell_scales(from, part, lane / 4, scales[0]);
    cell_scales(from, part, lane / 4 + 8, scales[1]);
    #pragma unroll
    for (int g = 0; g < GROUPS; ++g) {
      const Fragment& own = x[g][p * PARTS + part];
      #pragma unroll
      for (int h = 0; h < HALVES; ++h) {
        float of[NIBBLES][4] = {};
        #pragma unroll
        for (int n = 0; n < NIBBLES; ++n) {
          #pragma unroll
          for (int half = h; half < 2; half += HALVES) {
            multiply_half(of[n], codes.a[n], codes.b[n], half, own.high);
            if (PRECISE) multiply_half(of[n], codes.a[n], codes.b[n], half, own.low);
          }
        }
        #pragma unroll
        for (int i = 0; i < 4; ++i) {
          if (ROWS == 1 && i % 2 == 1) continue;  // no row's
          const float code = NIBBLES == 2 ? of[NIBBLES - 1][i] * 16.0f + of[0][i] : of[0][i];
          total[g][i] += scales[i / 2].factor[h] * code + scales[i / 2].offset[h] * sums.of[g][p * PARTS + part][h][i % 2];
        }
      }
    }
  }
  __syncwarp();  // all lanes have read
  ask_slot(slot, upcoming, p, more);
}
)";

// A row by itself. The tensor cores multiply eight rows, each of which has x in another cell and
// zeros in all others, so that a slot's products are summed for all its cells apart: rows 0 to 3
// have 16 bits of x, in the lanes 2 c and more of cell c, and rows 4 to 7 what they leave; or,
// where halves of a cell are scaled apart, each in eight rows. Groups of 16 columns follow each
// other in a block, whose next ones come while it multiplies: a warp copies its own slots alone.
constexpr std::string_view kOneRowRun = R"(
enum { SLOT = SLOT_BYTES / 16, CELLS = SLOTS * 4 };
struct Row { float sums[CELLS][HALVES], parts[2][WARPS][16], squares[WARPS], tile[2][16]; };
// Behind the slots, for each cell and q of its lanes: inputs as they are multiplied, and what is left of them.
__device__ __forceinline__ uint4* fragments() { return ring + LAPS * SLOTS * SLOT; }
__device__ __forceinline__ void ask_group(const Args& args, int group, int lap) {
  const char* from = (const char*)args.buffers[WEIGHT] + (long)group * SLOTS * SLOT_BYTES;
  #pragma unroll
  for (int i = 0; i < PIECES * SLOT; i += 32) {
    const int own = i + lane_of_thread(), at = warp_of_thread() * PIECES * SLOT + own;
    if (group < COLUMNS / 16 && own < PIECES * SLOT && at < SLOTS * SLOT) ask(ring + lap * SLOTS * SLOT + at, from + at * 16);
  }
  end_slot();
}

__device__ __forceinline__ void prepare_row(const Args& args, const Inputs& in, Row& row) {
  const auto* from = row_of(args, in, 0, 0);
  float square = 0.0f;
  #pragma unroll 2
  for (int first = 0; first < CELLS * 4; first += THREADS) {
    const int unit = first + threadIdx.x, at = unit / 4 * 32 + unit % 4 * 4;
    float x[VECTOR], scale[VECTOR];
    load_inputs(from, at < INPUTS ? at : PITCH, x);
    if (NORMED) load_scales(args, at, scale);
    Fragment to;
    pack_part(x, scale, square, to);
    if (unit < CELLS * 4) {
      fragments()[unit * 2] = make_uint4(to.high[0], to.high[1], to.high[2], to.high[3]);
      fragments()[unit * 2 + 1] = make_uint4(to.low[0], to.low[1], to.low[2], to.low[3]);
    }
    #pragma unroll
    for (int h = 0; h < HALVES; ++h) {
      float sum = 0.0f;
      #pragma unroll
      for (int w = h * (4 / HALVES); w < (h + 1) * (4 / HALVES); ++w) sum += sum_of_pair(to.high[w]) + sum_of_pair(to.low[w]);
      sum += __shfl_xor_sync(~0u, sum, 1);
      sum += __shfl_xor_sync(~0u, sum, 2);
      if (unit % 4 == 0 && unit < CELLS * 4) row.sums[unit / 4][h] = sum;
    }
  }
  if (!NORMED) return;
  square = warp_sum(square);
  if (lane_of_thread() == 0) row.squares[warp_of_thread()] = square;
}
// x of a cell in the lanes of this row of eight, `left`: what is left of it.
__device__ __forceinline__ void load_fragment(int cell, bool here, int left, unsigned (&x)[4]) {
  uint4 v = make_uint4(0, 0, 0, 0);
  if (here) v = fragments()[(cell * 4 + lane_of_thread() % 4) * 2 + left];
  x[0] = v.x, x[1] = v.y, x[2] = v.z, x[3] = v.w;
}
// Adds what the lane has of columns lane / 4 and lane / 4 + 8.
__device__ __forceinline__ void multiply_slot(const Row& row, const char* from, int slot, float (&total)[2]) {
  const int lane = lane_of_thread(), eighth = lane / 4;
  float of[2][2][4] = {};  // two chains: of nibbles, or of x and what is left of it
  #pragma unroll
  for (int cell = 0; cell < 4; ++cell) {
    CellCodes codes;
    cell_codes(from, cell, lane, codes);
    unsigned x[4];
    #pragma unroll
    for (int i = 0; i < HALVES; ++i) {
      if (HALVES == 1) load_fragment(slot * 4 + cell, eighth % 4 == cell, eighth / 4, x);
      #pragma unroll
      for (int half = 0; half < 2; ++half) {
        if (HALVES == 2) load_fragment(slot * 4 + cell, eighth == 2 * cell + half, i, x);
        #pragma unroll
        for (int n = 0; n < NIBBLES; ++n) multiply_half(of[cell / 2][HALVES == 2 ? i : n], codes.a[n], codes.b[n], half, x);
      }
    }
  }
  #pragma unroll
  for (int j = 0; j < 2; ++j) {
    const int cell = HALVES == 2 ? lane % 4 : lane % 2 * 2 + j, half = HALVES == 2 ? j : 0;
    const float sum = HALVES == 2 || lane % 4 < 2 ? row.sums[slot * 4 + cell][half] : 0.0f;
    #pragma unroll
    for (int c = 0; c < 2; ++c) {
      CellScales scales;
      cell_scales(from, cell, eighth + c * 8, scales);
      const float first = of[0][0][c * 2 + j] + of[1][0][c * 2 + j], second = of[0][1][c * 2 + j] + of[1][1][c * 2 + j];
      const float code = first + (NIBBLES == 2 ? 16.0f * second : HALVES == 2 ? second : 0.0f);
      total[c] += scales.factor[half] * code + scales.offset[half] * sum;
    }
  }
}
// A warp ends a group.
__device__ __forceinline__ void finish_group(const Args& args, Row& row, int group, int place, const Asking& asking) {
  const int lane = lane_of_thread();
  float scale = 1.0f;
  if (NORMED) {
    float squares = 0.0f;
    #pragma unroll
    for (int w = 0; w < WARPS; ++w) squares += row.squares[w];
    scale = 1.0f / sqrtf(squares * (1.0f / INPUTS) + EPSILON);
  }
  float* tile = row.tile[place];
  if (lane < 16) {
    float sum = 0.0f;
    #pragma unroll
    for (int w = 0; w < WARPS; ++w) sum += row.parts[place][w][lane];
    tile[lane] = sum * scale;
  }
  __syncwarp();
  if (READS_EARLY) {
    Giving giving = {asking.kept};
    early_epilogue(args, 0, (long)group * 16, 16, tile, giving);
  } else {
    epilogue_row(args, 0, (long)group * 16, 16, tile);
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, TOGETHER) assay_run(const Args args) {
  __shared__ Inputs in;
  __shared__ Row row;
  const int lane = lane_of_thread(), warp = warp_of_thread();
  let_next_begin();
  #pragma unroll
  for (int lap = 0; lap < LAPS; ++lap) ask_group(args, blockIdx.x + lap * BLOCKS, lap);
  Asking asking;
  if (READS_STEADY && warp == 0) early_epilogue(args, 0, (long)blockIdx.x * 16, 16, row.tile[0], asking);
  wait_for_kernels_ahead();
  prepare_inputs(args, in, 0, 1);
  prepare_row(args, in, row);
  __syncthreads();
  int lap = 0, turn = 0;
  #pragma unroll 1
  for (int group = blockIdx.x; group < COLUMNS / 16; group += BLOCKS, ++turn) {
    const bool ends = warp == turn % WARPS;
    if (READS_EARLY && ends && !(READS_STEADY && turn == 0)) early_epilogue(args, 0, (long)group * 16, 16, row.tile[0], asking);
    asm volatile("cp.async.wait_group %0;" :: "n"(LAPS - 1) : "memory");
    __syncwarp();  // what other lanes have copied
    float total[2] = {};
    #pragma unroll
    for (int p = 0; p < PIECES; ++p) {
      const int slot = warp * PIECES + p;
      if (EVEN || slot < SLOTS) multiply_slot(row, (const char*)(ring + (lap * SLOTS + slot) * SLOT), slot, total);
    }
    __syncwarp();  // all lanes have read
    if (TURNS > LAPS) ask_group(args, group + LAPS * BLOCKS, lap);
    else end_slot();
    #pragma unroll
    for (int c = 0; c < 2; ++c) {
      total[c] += __shfl_xor_sync(~0u, total[c], 1);
      total[c] += __shfl_xor_sync(~0u, total[c], 2);
      if (lane % 4 == 0) row.parts[turn % 2][warp][lane / 4 + c * 8] = total[c];
    }
    __syncthreads();  // before anybody writes the next but one's sums, whoever ends this has read
    if (ends) finish_group(args, row, group, turn % 2, asking);
    lap = lap + 1 == LAPS ? 0 : lap + 1;
  }
}
)";

}  // namespace

std::string cuda_codes_text() {
  return std::string(kCodes);
}

std::string cuda_block_slots_text() {
  return std::string(kBlockSlots);
}

std::string cuda_one_row_text() {
  return std::string(kOneRowRun);
}

}  // namespace assay::engine
