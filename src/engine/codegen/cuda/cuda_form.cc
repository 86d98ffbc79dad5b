// A product's form goes by its rows, attention's by its blocks.
#include "engine/codegen/cuda/cuda_form.h"

#include "engine/codegen/cuda/cuda_attention.h"
#include "engine/codegen/cuda/fp8_product.h"
#include "engine/codegen/cuda/library_product.h"
#include "engine/codegen/cuda/print_cuda.h"

namespace assay::engine {

Specialization cuda_form_sizes(const Kernel& kernel) {
  Specialization sizes = kernel.dims;
  if (!sizes.batch) sizes.batch = kernel.run_sizes.batch;
  if (!sizes.q_len) sizes.q_len = kernel.run_sizes.q_len;
  return sizes;
}

std::optional<int64_t> cuda_form_rows(const Kernel& kernel, const Dim& rows) {
  const Specialization sizes = cuda_form_sizes(kernel);
  if ((rows.power(0) > 0 && !sizes.batch) || (rows.power(1) > 0 && !sizes.q_len) ||
      (rows.power(2) > 0 && !sizes.kv_len)) {
    return std::nullopt;
  }
  return rows.value({sizes.batch.value_or(1), sizes.q_len.value_or(1), sizes.kv_len.value_or(1)});
}

CudaForm cuda_form(const Kernel& kernel) {
  CudaForm form;
  if (const auto* product = std::get_if<ProductKernel>(&kernel.body)) {
    form.product = cuda_product_shape(kernel, *product);
    form.library = may_have_many_rows(kernel, *product);
    form.fp8 = multiplies_fp8(kernel, *product);
    form.codes = product->codes_output;
    form.tiled_input = product->tiled_input, form.tiled_output = product->tiled_output;
  } else if (const auto* attention = std::get_if<AttentionKernel>(&kernel.body)) {
    form.threads = cuda_prefill_threads(kernel, *attention);
    if (cuda_attention_on_tensor_cores(kernel, *attention)) {
      form.shared_bytes = cuda_decode_shared_bytes(kernel, *attention);
    } else {
      form.several_rows = cuda_form_sizes(kernel).batch.value_or(1) > 1;
    }
  }
  return form;
}

}  // namespace assay::engine
