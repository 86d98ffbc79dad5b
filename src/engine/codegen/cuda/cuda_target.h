// CUDA's words for the loop IR: columns over the threads of a block, or over the lanes of a warp.
#pragma once

#include "engine/codegen/print_c.h"

namespace assay::engine {

// Block: outermost loops of stores over all threads, loops around such over warps. Reductions are
// the block's; barriers make them part of straight-line code only.
const CTarget& cuda_block_target();
// Rows: like block, of kCudaThreads threads, in kernels of rows: a thread asks for the values of
// several of its elements before it stores any.
const CTarget& cuda_rows_target();
// Grid: like rows, for a kernel whose blocks of one row, gridDim.y of them, share its argmax: the
// last one goes on behind it.
const CTarget& cuda_grid_target();
// Columns: like block, for a kernel of loops of stores alone, whose rows gridDim.y blocks share.
const CTarget& cuda_columns_target();
// Warp: stores over the lanes of one warp; no reductions.
const CTarget& cuda_warp_target();
// The same of a constant number of values, a multiple of the lanes mostly: loops that the compiler
// unrolls, so that a lane's values don't wait for each other.
const CTarget& cuda_counted_warp_target();
// Lane: at most one value a lane, in no loop.
const CTarget& cuda_lane_target();
// Unit: all of a loop's values by one thread, in a loop that the compiler unrolls.
const CTarget& cuda_unit_target();

}  // namespace assay::engine
