// Products of pairs of bf16 by the processor's own dot product (AVX512_BF16), twice as fast as
// fp32: panel products of many rows are made of them if the processor has it.
#pragma once

#include <cstdint>

namespace assay::engine::cpu {

// True if this processor can run the functions below.
bool has_bf16_dot();

// to[i] = x[i] as bf16, to the nearest, ties to even; subnormal results may be flushed to zero.
void round_to_bf16(const float* x, int64_t count, uint16_t* to);

// One panel (Packing in weight_layout.h) over 2 * pairs inputs:
// out[r, c] = sum over i of x[r, i] * panel[i, c] in fp32, on top of out[r, c] if `add`.
void bf16_block_product(const uint16_t* x,  // [rows, x_pitch]; 4-byte aligned
                        int64_t x_pitch, int64_t rows,
                        const uint16_t* panel,  // [pairs, 64, 2]; 64-byte aligned
                        int64_t pairs, float* out, int64_t out_pitch, bool add);

}  // namespace assay::engine::cpu
