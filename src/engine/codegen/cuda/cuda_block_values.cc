// Products of more than 8 rows with weights in blocks: what a warp takes apart it multiplies by
// many rows, so that codes become values first, in fp16, and sums need no scales.
#include <string>
#include <string_view>

#include "engine/codegen/cuda/cuda_tensor_product.h"

namespace assay::engine {
namespace {

// A value is 16 times the weight's: scales from 2^-18 on have all bits of fp16, smaller ones those
// from 2^-28 on, and a weight of 4094 or more is infinite. A row's inputs are in a unit of a power
// of two, of which the largest that the warp has is 2^14 to 2^15.
constexpr std::string_view kValues = R"(
struct Fragment { unsigned words[4]; };
struct __align__(8) InputSums { float unit[GROUPS * 8]; };
__device__ __forceinline__ unsigned pack_halves(float low, float high) {
  unsigned both;
  // Volatile, so that a group of rows is packed ahead of the barrier, and the next group's loads come behind it.
  asm volatile("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}
__device__ __forceinline__ void load_rows(const Args& args, const Inputs& in, int rows, const uint4*, Fragment (&x)[GROUPS][PIECES * PARTS],
                                          float (&square)[GROUPS], InputSums& sums) {
  const int lane = lane_of_thread();
  #pragma unroll
  for (int g = 0; g < GROUPS; ++g) {
    const int row = g * 8 + lane / 4;
    const auto* from = row_of(args, in, first_row(), row < rows ? row : 0);  // nobody asks for the sums of another
    float own[PIECES * PARTS][VECTOR];  // all of them are asked for before any is used
    #pragma unroll
    for (int p = 0; p < PIECES * PARTS; ++p) {
      const int at = input_of(p / PARTS, p % PARTS);
      load_inputs(args, from, is_there(p / PARTS, at) ? at : PITCH, own[p]);
    }
    unsigned largest = 0;  // its bits; NaN is the largest
    #pragma unroll
    for (int p = 0; p < PIECES * PARTS; ++p) {
      float scale[VECTOR];
      if (NORMED) load_scales(args, input_of(p / PARTS, p % PARTS), scale);
      #pragma unroll
      for (int v = 0; v < VECTOR; ++v) {
        if (NORMED) square[g] += own[p][v] * own[p][v], own[p][v] *= scale[v];
        const unsigned size = __float_as_uint(own[p][v]) & 0x7fffffffu;
        largest = size > largest ? size : largest;
      }
    }
    #pragma unroll
    for (int lanes = 1; lanes < 4; lanes *= 2) {
      const unsigned other = __shfl_xor_sync(~0u, largest, lanes);
      largest = other > largest ? other : largest;
    }
    const unsigned exponent = largest >> 23 > 30 ? largest >> 23 : 30;
    const float per_unit = __uint_as_float((268 - exponent) << 23);
    #pragma unroll
    for (int p = 0; p < PIECES * PARTS; ++p) {
      #pragma unroll
      for (int w = 0; w < 4; ++w) x[g][p].words[w] = pack_halves(own[p][2 * w] * per_unit, own[p][2 * w + 1] * per_unit);
    }
    // An input that isn't finite makes all products of its row NaN.
    const float unit = __uint_as_float(largest < 0x7f800000u ? (exponent - 18) << 23 : 0x7fc00000u);
    if (lane % 4 == 0) sums.unit[row] = unit;
    __syncwarp();  // and the next group's loads come behind it: registers hold one group's inputs
  }
}

__device__ __forceinline__ unsigned times_and_more(unsigned a, unsigned b, unsigned c) {
  unsigned both;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(both) : "r"(a), "r"(b), "r"(c));
  return both;
}
// A cell's words of the left operand of two products m16n8k16: of the lane's two columns, which follow
// each other, first the inputs 0 to 15. Below the upper byte of 1024 in fp16 a byte adds its number to it.
__device__ __forceinline__ void cell_values(const CellCodes& codes, const CellScales (&scales)[2], unsigned (&values)[8]) {
  unsigned factor[2][HALVES], less[2], offset[2];
  #pragma unroll
  for (int c = 0; c < 2; ++c) {
    #pragma unroll
    for (int h = 0; h < HALVES; ++h) factor[c][h] = pack_halves(scales[c].factor[h] * 16.0f, scales[c].factor[h] * 16.0f);
    // The 1024 or 1152 that is added to bytes below goes again, with a zero, without rounding.
    less[c] = (OFFSETS ? 0xe400e400u : 0xe480e480u) - CODE_SHIFT * 0x04000400u;
    if (ZEROS) less[c] = pack_halves(-(1024 >> CODE_SHIFT) - scales[c].zero, -(1024 >> CODE_SHIFT) - scales[c].zero);
    offset[c] = OFFSETS && !ZEROS ? pack_halves(scales[c].offset[0] * 16.0f, scales[c].offset[0] * 16.0f) : 0x80008000u;
  }
  #pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int half = i / 4, c = i % 2;
    unsigned two = codes.of[FLOATS ? i : half * 2 + c];
    if (!FLOATS) {
      two = __byte_perm(OFFSETS ? two : two ^ 0x80808080u, 0x64646464u, i % 4 < 2 ? 0x4140 : 0x4342);
      two = times_and_more(two, 0x3c003c00u - CODE_SHIFT * 0x04000400u, less[c]);
    }
    values[i] = times_and_more(two, factor[c][HALVES == 2 ? half : 0], offset[c]);
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
    CellScales scales[2];
    read_cell(from, part, codes, scales);
    unsigned values[8];
    cell_values(codes, scales, values);
    #pragma unroll
    for (int g = 0; g < GROUPS; ++g) {
      const Fragment& own = x[g][p * PARTS + part];
      #pragma unroll
      for (int h = 0; h < 2; ++h) {
        asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
            "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(total[g][0]), "+f"(total[g][1]), "+f"(total[g][2]), "+f"(total[g][3])
            : "r"(values[4 * h]), "r"(values[4 * h + 1]), "r"(values[4 * h + 2]), "r"(values[4 * h + 3]),
              "r"(own.words[2 * h]), "r"(own.words[2 * h + 1]));
      }
    }
  }
  if (p == PIECES - 1) {
    #pragma unroll
    for (int g = 0; g < GROUPS; ++g) {
      const float2 unit = *(const float2*)&sums.unit[g * 8 + lane % 4 * 2];  // of this row and the next one
      #pragma unroll
      for (int j = 0; j < 4; ++j) total[g][j] *= j % 2 == 0 ? unit.x : unit.y;
    }
  }
  __syncwarp();  // all lanes have read
  ask_slot(slot, upcoming, p, more);
}
)";

}  // namespace

std::string cuda_block_values_text() {
  return cuda_slot_reads_text() + std::string(kValues);
}

}  // namespace assay::engine
