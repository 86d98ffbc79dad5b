// Products of bf16 by the matrix tiles of Intel's processors (AMX): eight times the arithmetic of
// AVX512_BF16's dot products.
#pragma once

#include "engine/ops/cpu/tile_product.h"

namespace assay::engine::cpu {

// True if the processor has AMX for bf16 and the system lets this process use it. The first call
// asks the system; the threads of that time, and later ones, may use tiles.
bool has_amx_bf16();

// Only where has_amx_bf16(). Leaves no tile in use, so that switches of threads save none.
void amx_panel_product(const TileProduct& product);

}  // namespace assay::engine::cpu
