// Products in e4m3 on CUDA: which of a plan's products a library multiplies so, and the text that
// rounds rows of x and of weights to that type, each by a scale of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/codegen/cuda/print_cuda.h"
#include "engine/codegen/kernel.h"

namespace assay::engine {

// A row of e4m3: codes and one scale, element = code * scale. The scale makes the row's largest
// element 448, the largest code; in a row of nothing above 1e-30 all codes are 0. A row with NaN or
// an infinity has NaN for a code, so that all products with it are NaN.

// The reason why no library multiplies this product in e4m3: the product isn't marked as
// LinearAttributes::fp8, or its weight is neither of 16 bits nor in blocks of e4m3, or it is a
// decoding step's, or a size is no multiple of 16. Absent: one does, in runs of more than
// kProductRows rows; kernels for fewer multiply the weight as it is.
std::optional<std::string> why_not_fp8(const Kernel& kernel, const ProductKernel& product);
inline bool multiplies_fp8(const Kernel& kernel, const ProductKernel& product) {
  return !why_not_fp8(kernel, product);
}

// Memory of x's rows: [rows, inputs] codes, then [rows] scales in fp32, then, for a prologue that
// computes more than a norm in registers, the rows in the weight's type that are rounded.
struct Fp8Rows {
  int64_t scales_at = 0, wide_at = 0, bytes = 0;
};
Fp8Rows fp8_rows(int64_t rows, int64_t inputs);

// True if a kernel behind the library's product of `first` may write its one output as codes in the
// place of x of `second`, whose x that output is: a row of it fits a block's registers.
bool may_write_codes(const Kernel& first, const Kernel& second);

// block_max(), scale_of(), to_codes() and round_row(), by which a block rounds a row of INPUTS
// elements, of fp32 or of the type of cuda_widen_text(), which is ahead of it.
std::string fp8_rounding_text();
// The entry assay_prologue of a product whose x no norm in registers computes. `wide`: the lines
// that write row `row` of the prologue's x to `to`, in the weight's type; empty: x lies in memory.
std::string fp8_prologue_text(const Kernel& kernel, const ProductKernel& product,
                              const std::string& row, const std::string& wide);
// The entry assay_epilogue_to_codes, a block a row, behind unit_epilogue_text(). Args::workspace is
// the place of the products, and the output's buffer that of the codes.
std::string fp8_epilogue_text(const Kernel& kernel, const ProductKernel& product);
// The launches of these entries for so many rows.
CudaLaunch fp8_epilogue_launch(const Kernel& kernel, const ProductKernel& product, int64_t rows);
CudaLaunch fp8_prologue_launch(const Kernel& kernel, const ProductKernel& product, int64_t rows);

// The entry assay_round of a module of its own, a block a row, for
//   struct Args { const void* from; unsigned char* codes; float* scales; }:
// `from` has rows of `inputs` elements of the type (fp16 or bf16), a multiple of 16, one behind the
// other.
std::string print_fp8_weight(DType dtype, int64_t inputs);
// The same of slots of 16 columns (block_slots.h) of a format of e4m3, a block for each.
std::string print_fp8_blocks(WeightFormat format, int64_t inputs);

}  // namespace assay::engine
