// Products of up to 8 rows with weights in blocks on tensor cores, which multiply codes as they
// are: a cell of 32 inputs is scaled behind. Codes are integers, or e4m3 as fp16, and so x is in
// units of its own for each cell: 16 bits in two bytes, whose products are summed without rounding,
// or two values of fp16.
#include <string>
#include <string_view>

#include "engine/block_cells.h"
#include "engine/codegen/cuda/cuda_tensor_product.h"

namespace assay::engine {
namespace {

// The part that every kernel of codes has.
constexpr std::string_view kCodes = R"(
enum { X_WORDS = FLOATS ? 4 : 2 };
// A lane's inputs of a cell of a row as they are multiplied, the cell's unit, and its sum.
struct Fragment { unsigned high[X_WORDS], low[X_WORDS]; float unit, sum; };
// The cell's largest, of which NaN is the largest: its bits.
__device__ __forceinline__ unsigned largest_of_cell(const float (&x)[VECTOR]) {
  unsigned largest = 0;
  #pragma unroll
  for (int v = 0; v < VECTOR; ++v) {
    const unsigned size = __float_as_uint(x[v]) & 0x7fffffffu;
    largest = size > largest ? size : largest;
  }
  #pragma unroll
  for (int lanes = 1; lanes < 4; lanes *= 2) {
    const unsigned other = __shfl_xor_sync(~0u, largest, lanes);
    largest = other > largest ? other : largest;
  }
  return largest;
}
// Inputs from 2^126 on, and what isn't finite, make all products of their row NaN.
__device__ __forceinline__ float unit_or_nan(unsigned largest, float unit) {
  return largest < 0x7e800000u ? unit : __uint_as_float(0x7fc00000u);
}
__device__ __forceinline__ void pack_cell(const float (&x)[VECTOR], Fragment& to);
// x times the norm's weight, and the sum of its squares.
__device__ __forceinline__ void pack_part(float (&x)[VECTOR], const float (&scale)[VECTOR], float& square, Fragment& to) {
  #pragma unroll
  for (int v = 0; v < VECTOR; ++v) {
    if (NORMED) square += x[v] * x[v], x[v] *= scale[v];
  }
  pack_cell(x, to);
}
template <typename T>
__device__ __forceinline__ void take_inputs(const T*, bool, Fragment&) {}
// The words of a half of a cell that is scaled apart.
__device__ __forceinline__ void words_of_half(const unsigned (&from)[X_WORDS], int half, unsigned (&x)[X_WORDS]) {
  #pragma unroll
  for (int w = 0; w < X_WORDS; ++w) x[w] = HALVES == 1 || w == half ? from[w] : 0;
}
)";

// Up to 32512 units, so that the upper byte is one with a sign after the lower one's sign is taken
// out.
constexpr std::string_view kIntegers = R"(
typedef int code_sum_t;
__device__ __forceinline__ void multiply_cell(int (&sum)[4], const CellCodes& codes, const unsigned (&x)[X_WORDS]) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32." CODE_TYPE ".s8.s32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])
      : "r"(codes.of[0]), "r"(codes.of[1]), "r"(codes.of[2]), "r"(codes.of[3]), "r"(x[0]), "r"(x[1]));
}
__device__ __forceinline__ float both_products(int high, int low) { return (float)(high * 256 + low); }
// Byte `n` of each of four words.
__device__ __forceinline__ unsigned bytes_of(const unsigned (&words)[4], int n) {
  const int two = n + (n + 4) * 16;
  return __byte_perm(__byte_perm(words[0], words[1], two), __byte_perm(words[2], words[3], two), 0x5410);
}
__device__ __forceinline__ void pack_cell(const float (&x)[VECTOR], Fragment& to) {
  const unsigned largest = largest_of_cell(x);
  const float size = __uint_as_float(largest), per_unit = size > 1e-30f ? __fdividef(32512.0f, size) : 0.0f;
  to.unit = unit_or_nan(largest, size * (1.0f / 32512.0f));
  int sum = 0;
  #pragma unroll
  for (int w = 0; w < 2; ++w) {
    // Rounded to an integer by what is added: 1.5 2^23.
    unsigned low[4], high[4];
    #pragma unroll
    for (int v = 0; v < 4; ++v) {
      low[v] = __float_as_uint(fmaf(x[4 * w + v], per_unit, 12582912.0f));
      high[v] = low[v] + 128;
      sum += (int)(low[v] - 0x4b400000u);
    }
    to.low[w] = bytes_of(low, 0), to.high[w] = bytes_of(high, 1);
  }
  if (OFFSETS) {
    sum += __shfl_xor_sync(~0u, sum, 1);
    sum += __shfl_xor_sync(~0u, sum, 2);
    to.sum = to.unit * (float)sum;
  }
  to.unit *= 1.0f / (1 << CODE_SHIFT);  // bytes are so many times their codes
}
)";

// Units of a power of two, in which the cell's largest has 15 bits.
constexpr std::string_view kHalves = R"(
typedef float code_sum_t;
__device__ __forceinline__ unsigned pack_halves(float low, float high) {
  unsigned both;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}
__device__ __forceinline__ void multiply_cell(float (&sum)[4], const CellCodes& codes, const unsigned (&x)[X_WORDS]) {
  #pragma unroll
  for (int h = 0; h < 2; ++h) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(codes.of[4 * h]), "r"(codes.of[4 * h + 1]), "r"(codes.of[4 * h + 2]), "r"(codes.of[4 * h + 3]),
          "r"(x[2 * h]), "r"(x[2 * h + 1]));
  }
}
__device__ __forceinline__ float both_products(float high, float low) { return high + low; }
__device__ __forceinline__ void pack_cell(const float (&x)[VECTOR], Fragment& to) {
  const unsigned largest = largest_of_cell(x), exponent = largest >> 23 > 20 ? largest >> 23 : 20;
  const float per_unit = __uint_as_float((268 - exponent) << 23);
  to.unit = unit_or_nan(largest, __uint_as_float((exponent - 14) << 23));
  #pragma unroll
  for (int w = 0; w < 4; ++w) {
    const float first = x[2 * w] * per_unit, second = x[2 * w + 1] * per_unit;
    const unsigned high = to.high[w] = pack_halves(first, second);
    to.low[w] = pack_halves(first - from_f16((unsigned short)(high & 0xffffu)),
                            second - from_f16((unsigned short)(high >> 16)));
  }
}
)";

// Slots of the form kTensor.
constexpr std::string_view kSlotReads = R"(
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
// A cell of columns lane / 4 and lane / 4 + 8.
__device__ __forceinline__ void read_cell(const char* slot, int cell, CellCodes& codes, CellScales (&scales)[2]) {
  cell_codes(slot, cell, lane_of_thread(), codes);
  #pragma unroll
  for (int c = 0; c < 2; ++c) cell_scales(slot, cell, lane_of_thread() / 4 + c * 8, scales[c]);
}
)";

// Up to 8 rows, one group: a warp multiplies codes, and scales the products of each cell.
constexpr std::string_view kBlockSlots = R"(
// Units and sums of a warp's inputs, in shared memory: registers wouldn't hold them.
struct __align__(8) InputSums { float unit[PIECES * PARTS][8], of[OFFSETS ? PIECES * PARTS : 1][8]; };
__device__ __forceinline__ void sum_inputs(const Fragment (&x)[GROUPS][PIECES * PARTS], InputSums& sums) {
  #pragma unroll
  for (int part = 0; part < PIECES * PARTS; ++part) {
    if (lane_of_thread() % 4 != 0) continue;
    sums.unit[part][lane_of_thread() / 4] = x[0][part].unit;
    if (OFFSETS) sums.of[OFFSETS ? part : 0][lane_of_thread() / 4] = x[0][part].sum;
  }
  __syncwarp();
}
__device__ __forceinline__ void run_slot(uint4* slot, const slot_t* upcoming, int p, bool more, const Fragment (&x)[GROUPS][PIECES * PARTS],
                                         const InputSums& sums, float (&total)[GROUPS][4], float (&)[4]) {
  const char* from = (const char*)slot;
  const int lane = lane_of_thread();
  #pragma unroll
  for (int part = 0; part < PARTS; ++part) {
    if (!is_there(p, first_of(p) + part * 32)) break;  // of the whole warp
    CellCodes codes;
    CellScales scales[2];
    read_cell(from, part, codes, scales);
    const int at = p * PARTS + part, row = lane % 4 * 2;  // this one's and the next one's products
    const Fragment& own = x[0][at];
    const float2 unit = *(const float2*)&sums.unit[at][row], sum = *(const float2*)&sums.of[OFFSETS ? at : 0][row];
    #pragma unroll
    for (int h = 0; h < HALVES; ++h) {
      code_sum_t high[4] = {}, low[4] = {};
      unsigned words[X_WORDS];
      words_of_half(own.high, h, words);
      multiply_cell(high, codes, words);
      words_of_half(own.low, h, words);
      multiply_cell(low, codes, words);
      #pragma unroll
      for (int j = 0; j < 4; ++j) {
        if (ROWS == 1 && j % 2 == 1) continue;  // no row's
        total[0][j] += scales[j / 2].factor[h] * ((j % 2 == 0 ? unit.x : unit.y) * both_products(high[j], low[j]));
        if (OFFSETS) total[0][j] += scales[j / 2].offset[h] * (j % 2 == 0 ? sum.x : sum.y);
      }
    }
  }
  __syncwarp();  // all lanes have read
  ask_slot(slot, upcoming, p, more);
}
)";

// A row by itself. The tensor cores multiply eight rows: rows 2 c and 2 c + 1 have the upper and
// the lower part of x in cell c, and zeros in all others, so that a lane gets one cell's products,
// cell lane % 4, which are scaled at once; where halves of a cell are scaled apart, rows 2 c and 2
// c + 1 have them, and the two parts of x are multiplied one behind the other. A warp has the same
// slots of each group of 16 columns, whose next ones come while it multiplies: it copies its own
// slots alone, and keeps their x in registers.
constexpr std::string_view kOneRowRun = R"(
enum { SLOT = SLOT_BYTES / 16, PAIRS = (PIECES + 1) / 2, DEPTH = LAPS * PIECES };
struct Row { float parts[2][WARPS][16], squares[WARPS], tile[2][16]; };
// A slot's x: what the lane's row has of cell lane / 8, and unit and sum of cell lane % 4. Where
// halves are scaled apart a row has one of a cell's words, of the upper and of the lower part.
struct SlotInputs { unsigned x[X_WORDS]; float unit, sum; };
// The lane's share of a slot.
__device__ __forceinline__ void ask_slot(uint4* slot, const char* from, bool there) {
  #pragma unroll
  for (int i = 0; i < SLOT; i += 32) {
    if (there && i + lane_of_thread() < SLOT) ask(slot + i, from + i * 16);
  }
  end_slot();
}

// The first of the lane's inputs where a warp takes two slots at a time, or PITCH.
__device__ __forceinline__ int input_of_pair(int pair) {
  const int lane = lane_of_thread(), piece = pair * 2 + lane / 16;
  const int at = (warp_of_thread() * PIECES + piece) * 128 + lane % 16 / 4 * 32 + lane % 4 * 4;
  return piece < PIECES && at < INPUTS ? at : PITCH;
}
__device__ __forceinline__ void prepare_row(const Args& args, const Inputs& in, const float (&scale)[PAIRS][VECTOR], Row& row, SlotInputs (&own)[PIECES]) {
  const auto* from = row_of(args, in, 0, 0);
  const int lane = lane_of_thread(), eighth = lane / 4;
  float x[PAIRS][VECTOR], square = 0.0f;  // all are asked for before any is used
  #pragma unroll
  for (int pair = 0; pair < PAIRS; ++pair) load_inputs(args, from, input_of_pair(pair), x[pair]);
  Fragment part;
  #pragma unroll
  for (int p = 0; p < PIECES; ++p) {
    if (p % 2 == 0) pack_part(x[p / 2], scale[p / 2], square, part);
    const int first = p % 2 * 16, multiplied = first + eighth / 2 * 4 + lane % 4, scaled = first + lane % 4 * 4;
    #pragma unroll
    for (int w = 0; w < X_WORDS; ++w) {
      const unsigned high = __shfl_sync(~0u, part.high[w], multiplied), low = __shfl_sync(~0u, part.low[w], multiplied);
      if (HALVES == 1) own[p].x[w] = eighth % 2 == 0 ? high : low;
      else if (w == 0 || eighth % 2 == w) own[p].x[0] = high, own[p].x[1] = low;
    }
    own[p].unit = __shfl_sync(~0u, part.unit, scaled);
    if (OFFSETS) own[p].sum = __shfl_sync(~0u, part.sum, scaled);
  }
  if (!NORMED) return;
  square = warp_sum(square);
  if (lane == 0) row.squares[warp_of_thread()] = square;
}
// Else a compiler keeps what every cell's product has of them, zeros too, in registers over all groups.
__device__ __forceinline__ void hide(SlotInputs& own) {
#if __CUDA_ARCH__
  #pragma unroll
  for (int w = 0; w < X_WORDS; ++w) asm volatile("" : "+r"(own.x[w]));
#endif
}
// Adds what the lane has of columns lane / 4 and lane / 4 + 8.
__device__ __forceinline__ void multiply_slot(const SlotInputs& own, const char* from, float (&total)[2]) {
  const int lane = lane_of_thread(), eighth = lane / 4;
  code_sum_t of[HALVES][4] = {};
  #pragma unroll
  for (int cell = 0; cell < 4; ++cell) {
    CellCodes codes;
    cell_codes(from, cell, lane, codes);
    #pragma unroll
    for (int i = 0; i < HALVES; ++i) {
      unsigned x[X_WORDS];
      #pragma unroll
      for (int w = 0; w < X_WORDS; ++w) {
        x[w] = HALVES == 2 ? (eighth == 2 * cell + w ? own.x[i] : 0) : eighth / 2 == cell ? own.x[w] : 0;
      }
      multiply_cell(of[i], codes, x);
    }
  }
  #pragma unroll
  for (int c = 0; c < 2; ++c) {
    CellScales scales;
    cell_scales(from, lane % 4, eighth + c * 8, scales);
    float products = 0.0f;
    #pragma unroll
    for (int h = 0; h < HALVES; ++h) {
      products += scales.factor[h] * both_products(of[0][c * 2 + h], HALVES == 2 ? of[HALVES - 1][c * 2 + h] : of[0][c * 2 + 1]);
    }
    total[c] += products * own.unit;
    if (OFFSETS) total[c] += scales.offset[0] * own.sum;
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

extern "C" __global__ void BOUNDS assay_run(const Args args) {
  __shared__ Inputs in;
  __shared__ Row row;
  const int lane = lane_of_thread(), warp = warp_of_thread();
  let_next_begin();
  constexpr long of_round = (long)BLOCKS * SLOTS * SLOT_BYTES;
  const int first = warp * PIECES, slots = EVEN || SLOTS - first > PIECES ? PIECES : SLOTS - first;
  uint4* const own_slots = ring + first * SLOT;
  const char* upcoming = (const char*)args.buffers[WEIGHT] + ((long)blockIdx.x * SLOTS + first) * SLOT_BYTES + lane * 16;
  #pragma unroll
  for (int lap = 0; lap < LAPS; ++lap, upcoming += of_round) {
    #pragma unroll
    for (int p = 0; p < PIECES; ++p) {
      ask_slot(own_slots + (lap * SLOTS + p) * SLOT + lane, upcoming + p * SLOT_BYTES, p < slots && blockIdx.x + lap * BLOCKS < COLUMNS / 16);
    }
  }
  Asking asking;
  if (READS_STEADY && warp == 0) early_epilogue(args, 0, (long)blockIdx.x * 16, 16, row.tile[0], asking);
  float scale[PAIRS][VECTOR];
  #pragma unroll
  for (int pair = 0; pair < PAIRS; ++pair) {
    if (NORMED) load_scales(args, input_of_pair(pair), scale[pair]);
  }
  wait_for_kernels_ahead();
  prepare_inputs(args, in, 0, 1);
  SlotInputs own[PIECES];
  prepare_row(args, in, scale, row, own);
  int lap = 0, turn = 0;
  #pragma unroll 1
  for (int group = blockIdx.x; group < COLUMNS / 16; group += BLOCKS, ++turn) {
    const bool ends = warp == turn % WARPS;
    if (READS_EARLY && ends && !(READS_STEADY && turn == 0)) early_epilogue(args, 0, (long)group * 16, 16, row.tile[0], asking);
    const bool more = TURNS > LAPS && group + LAPS * BLOCKS < COLUMNS / 16;
    float total[2] = {};
    #pragma unroll
    for (int p = 0; p < PIECES; ++p) {
      uint4* const slot = own_slots + (lap * SLOTS + p) * SLOT;
      asm volatile("cp.async.wait_group %0;" :: "n"(DEPTH - 1) : "memory");
      __syncwarp();  // what other lanes have copied
      hide(own[p]);
      if (EVEN || p < slots) multiply_slot(own[p], (const char*)slot, total);
      __syncwarp();  // all lanes have read
      ask_slot(slot + lane, upcoming + p * SLOT_BYTES, more && p < slots);
    }
    upcoming += of_round;
    const bool second = lane % 2 == 1;  // whose column's sum the lane keeps
    float sum = (second ? total[1] : total[0]) + __shfl_xor_sync(~0u, second ? total[0] : total[1], 1);
    sum += __shfl_xor_sync(~0u, sum, 2);
    if (lane % 4 < 2) row.parts[turn % 2][warp][lane / 4 + lane % 4 * 8] = sum;
    __syncthreads();  // before anybody writes the next but one's sums, whoever ends this has read
    if (ends) finish_group(args, row, group, turn % 2, asking);
    lap = lap + 1 == LAPS ? 0 : lap + 1;
  }
}
)";

}  // namespace

std::string cuda_codes_text(WeightFormat format) {
  const BlockParts parts = block_parts(format);
  if (parts.is_float) return std::string(kCodes) + std::string(kHalves);
  return std::string(kCodes) + "\n#define CODE_TYPE " + (parts.has_offset() ? "\"u8\"" : "\"s8\"") +
         std::string(kIntegers);
}

std::string cuda_slot_reads_text() {
  return std::string(kSlotReads);
}

std::string cuda_block_slots_text() {
  return cuda_slot_reads_text() + std::string(kBlockSlots);
}

std::string cuda_one_row_text() {
  return std::string(kOneRowRun);
}

}  // namespace assay::engine
