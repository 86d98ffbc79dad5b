// Products of many rows with weights in blocks (CudaProductForm::kTiles): whether they take less
// time than a library's product of decoded weights, the cut of their work, and their text.
#pragma once

#include <cstdint>
#include <string>

#include "engine/codegen/cuda/cuda_product_shape.h"
#include "engine/codegen/kernel.h"

namespace assay::engine {

// True, and the shape, where the form fits a product of so many rows whose weight is in blocks, and
// is expected to take less time than decoding the weight and multiplying it by the library.
bool cuda_by_tiles(const Kernel& kernel, const ProductKernel& product, int64_t rows,
                   CudaProductShape& shape);
// Blocks of a run, which share all of its tiles' slots: whole tiles, equal parts of each, or shares
// that begin and end anywhere, whichever is expected to take least time.
int64_t cuda_tile_blocks(const CudaProductShape& shape, const ProductKernel& product, int64_t rows);
// Floats of the workspace behind the counters: rows as they are multiplied, and the parts of tiles
// that several blocks have.
int64_t cuda_tile_workspace(const CudaProductShape& shape, const ProductKernel& product,
                            int64_t rows);

// True if the epilogue of `first` can write its one output as the tiles of `second` read rows
// (ProductKernel::tiled_output), in the place that as many fp32 have.
bool may_write_tiled_rows(const Kernel& first, const Kernel& second);

// Its constants, and, behind cuda_slot_text(), the entries assay_prologue and assay_run.
std::string cuda_tile_constants(const CudaProductShape& shape, const ProductKernel& product);
std::string cuda_tile_run(const Kernel& kernel, const ProductKernel& product,
                          const CudaProductShape& shape);

}  // namespace assay::engine
