// Products of many rows on CUDA: a library multiplies, between kernels for the nodes fused before
// and behind the product.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/codegen/kernel.h"

namespace assay::engine {

// Operands of the library's own epilogue, if it does everything that is fused behind a product.
struct DirectOutput {
  ir::BufferId out = 0;                // [rows, outputs], written by the library
  std::optional<ir::BufferId> addend;  // like out, added to it
  std::optional<ir::BufferId> bias;    // [outputs], added to each row
};

struct LibraryProduct {
  // x is computed, or not of the weight's type: assay_prologue writes it, in the weight's type,
  // rows at a pitch of Packing::padded_inputs(inputs). Without, the library reads the buffer `x`,
  // rows at a pitch of the inputs.
  bool prologue = false;
  // The library multiplies e4m3: assay_prologue writes x as fp8_rows() has it, unless the kernel
  // behind the product before did.
  bool fp8 = false;
  // Absent: the library writes all packed columns, in the weight's type, and assay_epilogue goes
  // on.
  std::optional<DirectOutput> direct;
};

LibraryProduct library_product(const Kernel& kernel, const ProductKernel& product);

// True if a row of a norm fits the registers of a block of so many threads, and can be loaded four
// elements at a time.
bool is_norm_held(const ProductKernel& product, int64_t threads);

// Packed columns, all of one segment, that a warp of assay_epilogue takes.
int64_t library_epilogue_columns(const Packing& packing);

// True if a run of this kernel may have more rows than the kernel multiplies by itself.
bool may_have_many_rows(const Kernel& kernel, const ProductKernel& product);

// The entries assay_prologue and assay_epilogue, if library_product() has them, and
// assay_epilogue_to_codes, if the product has codes_output; of a weight in blocks assay_decode too.
// Args::workspace is the place of x, that of the products, and that of the decoded weight.
std::string print_library_entries(const Kernel& kernel, const ProductKernel& product);
// The entry assay_prologue alone, behind a definition of X_AT: the place of x in the workspace,
// in floats. In the form kTiles it stands behind put_four() and put_row() too (cuda_tile_text.cc).
std::string print_library_prologue(const Kernel& kernel, const ProductKernel& product);

}  // namespace assay::engine
