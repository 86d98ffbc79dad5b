// Weights in blocks (weight_format.h) as a GPU's kernels read them: the same bits in the order of
// the tensor cores' fragments, and the text that takes them apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "engine/weight_format.h"

namespace assay::engine {

// A weight packed in rows falls into groups of 16 columns, and a group into slots of 128 inputs,
// one behind the other; what is beyond the last input has codes and scales of zero. A slot has four
// cells of 32 inputs. In a cell, lane 4 g + q of a warp has columns g and g + 8, and of each the
// inputs 4 q to 4 q + 3 and 16 + 4 q to 16 + 4 q + 3, as v0 to v7. A slot's parts, in this order:
//   codes of 4 to 6 bits, of which a byte's upper bits are a code, less its zero where it has one
//     (the upper bit is the sign then): of their upper four bits, for two cells and lane 16 bytes:
//     for each cell a word for each of the two columns, whose byte j has those of v j below those
//     of v 4 + j;
//   or codes of 8 bits, for cell and lane four words: v0 to v3 of the two columns, then v4 to v7;
//     integers with a sign, or e4m3;
//   of 6 bits, for cell and lane a word: byte j has the lower two of v j and of v 4 + j of the
//     first column, then of the second; of 5 bits for two cells and lane a word: byte j has the
//     lower one of the same four, of the first cell below those of the second;
//   scales: f16 d of each column and cell, or of each column in formats of 256 values; with a
//     minimum d and m side by side; the first words of int4 and fp8 blocks, of each column and each
//     group of inputs that shares one;
//   small scales, for column and cell two bytes: scale and minimum, or, of q6_k, 128 more than the
//     scales of inputs 0 to 15 and of 16 to 31.
struct CudaSlot {
  static constexpr int64_t kColumns = 16, kInputs = 128, kCells = 4, kLanes = 32;

  WeightFormat format;
  int64_t low_at = 0, scales_at = 0, small_at = 0, bytes = 0;
  int64_t scale_bytes = 0;  // of a column: 2, or 4
  int64_t scales = 0;       // of a column
  bool small = false;

  static constexpr int64_t count(int64_t inputs) { return (inputs + kInputs - 1) / kInputs; }
};

// The format must be one of blocks.
CudaSlot cuda_slot(WeightFormat format);

// The bytes of 16 columns. `inputs`: whole blocks. Behind a weight's last group lies the order of
// its inputs, if they have one of their own: for each stored input int32, as
// TensorView::input_order.
int64_t cuda_group_bytes(WeightFormat format, int64_t inputs);
// columns[c]: the blocks of column c, or null for zeros. `to`: cuda_group_bytes().
void pack_cuda_group(WeightFormat format,
                     std::span<const std::byte* const, CudaSlot::kColumns> columns, int64_t inputs,
                     std::byte* to);

// Text, behind the prelude, for slots in memory of any kind:
//   enum SLOT_BYTES, SLOTS (of 16 columns, for so many inputs), HALVES: 2 where inputs 0 to 15 and
//     16 to 31 of a cell are scaled apart, else 1; FLOATS: codes are e4m3, else bytes, which are
//     2^CODE_SHIFT times their codes; OFFSETS: they have no sign, and a value has something added
//     to it; ZEROS: that is its factor times a whole number;
//   struct CellCodes: the lane's words of the left operand of a warp's product of 16 columns and 32
//     inputs, bytes of m16n8k32, or fp16 of two m16n8k16; cell_codes(slot, cell, lane, codes);
//     code_value(codes, c, v), v of column lane / 4 + 8 c;
//   struct CellScales { float factor[HALVES], offset[HALVES], zero; }: value = factor * code +
//     offset, or, with ZEROS alone, factor * (code - zero) too; cell_scales(slot, cell, column,
//     scales).
std::string cuda_slot_text(WeightFormat format, int64_t inputs);

// Behind it: block_value(base, column, input), a value by itself.
std::string cuda_block_value_text();

}  // namespace assay::engine
