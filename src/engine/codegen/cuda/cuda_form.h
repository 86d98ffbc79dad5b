// Which of its forms a kernel has on a GPU: what of its text depends on sizes of runs beyond its
// constants.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>

#include "engine/codegen/cuda/cuda_product_shape.h"
#include "engine/codegen/kernel.h"

namespace assay::engine {

// Sizes that the form is chosen by: the kernel's constants, else its run_sizes. So a size that has
// become a symbol chooses the same form as a constant.
Specialization cuda_form_sizes(const Kernel& kernel);
// Rows of such runs; absent: any number.
std::optional<int64_t> cuda_form_rows(const Kernel& kernel, const Dim& rows);

// Kernels that differ in run_sizes alone have equal texts where their forms are equal.
struct CudaForm {
  CudaProductShape product;  // of products
  bool library = false;      // likewise: runs may be of more rows than the kernel itself multiplies
  bool fp8 = false, codes = false;  // likewise: x is rounded, or the output, for a library
  bool tiled_input = false, tiled_output = false;  // likewise: of tiles
  int64_t threads = 0;                             // of attention's prompts
  int64_t shared_bytes = 0;   // that attention of few queries on tensor cores asks for
  bool several_rows = false;  // of attention elsewhere: the batch is known to have more than one
  friend auto operator<=>(const CudaForm&, const CudaForm&) = default;
};
CudaForm cuda_form(const Kernel& kernel);

}  // namespace assay::engine
