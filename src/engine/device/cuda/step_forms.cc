// Kernels are printed again only where another size means another form.
#include "engine/device/cuda/step_forms.h"

#include <algorithm>

#include "base/files/hash.h"

namespace assay::engine::cuda {

StepForms::StepForms(StepPlan& plan, KernelStore& kernels, Driver& driver, bool any_sizes)
    : plan_(plan),
      kernels_(kernels),
      driver_(driver),
      any_sizes_(any_sizes),
      loaded_(plan.kernels.size()) {
  if (!any_sizes && plan.dims.q_len == 1) narrow_ = narrow_buffers(plan);
}

constexpr int64_t kGranted = 47 * 1024;  // that a block may have beside its own without asking

// Percent of the memory that is shared while a step of one row runs attention, and of a block that
// has more than 64 KB. Its other kernels keep their cache: where all asked for memory, a step took
// 0.05 ms more.
constexpr int kAttentionPercent = 44, kLargeAttentionPercent = 60;
// Likewise of a step of a few rows of weights in 16 bits, whose blocks read x through the cache.
constexpr int kFewRowsPercent = 60;
// Likewise while one row's products run whose weights go through the cache: a prompt's, beside the
// library's, and, of a step whose other kernels fill that memory, long ones, such as a head. They
// gain more than changing the shares costs.
constexpr int kThroughCachePercent = 14;

namespace {

int attention_percent(int64_t shared_bytes) {
  return shared_bytes > 64 * 1024 ? kLargeAttentionPercent : kAttentionPercent;
}

bool of_few_rows(const Kernel& kernel, const CudaForm& form) {
  const auto* product = std::get_if<ProductKernel>(&kernel.body);
  return product != nullptr && form.product.form == CudaProductForm::kTensor &&
         !kernel.buffers[product->weight].blocks;
}

bool needs_cache(const Kernel& kernel, const CudaForm& form, bool is_step) {
  constexpr int64_t kLong = 64 << 20;  // elements of the weight
  const auto* product = std::get_if<ProductKernel>(&kernel.body);
  return product != nullptr && form.product.form == CudaProductForm::kHeld &&
         form.product.rows == 1 && !form.library && !kernel.buffers[product->weight].blocks &&
         (!is_step || product->inputs * packed_columns(product->packing) >= kLong);
}

}  // namespace

::assay::Status StepForms::choose(const DimValues& dims) {
  const std::pair sizes{any_sizes_ ? 0 : dims.batch, any_sizes_ ? 0 : dims.q_len};
  if (chosen_for_ == sizes) return {};
  chosen_for_.reset();
  shared_percent_ = 0;
  const bool is_step = plan_.dims.q_len == 1;
  const bool narrow = !narrow_.empty() && dims.batch > kProductRows;
  for (const NarrowBuffer& buffer : narrow_) {
    plan_.kernels[buffer.kernel].kernel.buffers[buffer.buffer].dtype =
        narrow ? buffer.dtype : DType::kF32;
  }
  std::vector<CudaForm> forms;
  for (PlannedKernel& planned : plan_.kernels) {
    planned.kernel.target = driver_.info().target;
    if (!any_sizes_) planned.kernel.run_sizes = {dims.batch, dims.q_len, {}, {}};
  }
  pair_tiles(plan_);
  const bool rings = std::ranges::any_of(plan_.kernels, [](const PlannedKernel& planned) {
    return cuda_form(planned.kernel).product.form == CudaProductForm::kOneRow;
  });
  bool few_rows = false, others = false;
  for (PlannedKernel& planned : plan_.kernels) {
    planned.kernel.beside_rings = rings;
    forms.push_back(cuda_form(planned.kernel));
    const bool of_few = of_few_rows(planned.kernel, forms.back());
    few_rows |= of_few;
    others |= !of_few && forms.back().product.shared_bytes > 0;
    if (forms.back().product.shared_bytes > 0 ||
        (is_step && dims.batch > 1 && forms.back().shared_bytes > kGranted)) {
      shared_percent_ = 100;
    }
  }
  if (is_step && few_rows && !others) shared_percent_ = kFewRowsPercent;
  chosen_.assign(forms.size(), {});
  for (size_t i = 0; i < forms.size(); ++i) {
    Loaded& loaded = loaded_[i][{forms[i], narrow, shared_percent_}];
    if (loaded.module == nullptr) {
      ASSAY_TRY(const std::string source, print_cuda(plan_.kernels[i].kernel));
      loaded.needs_cache = needs_cache(plan_.kernels[i].kernel, forms[i], is_step) &&
                           (shared_percent_ > 0 || !is_step);
      const int percent = loaded.needs_cache ? kThroughCachePercent : shared_percent_;
      ASSAY_TRY(loaded.module, kernels_.load(source, percent));
      loaded.sha256 = sha256_hex(source);
    }
    chosen_[i] = loaded;
  }
  chosen_for_ = sizes;
  return {};
}

Result<Function> StepForms::function(size_t kernel, const CudaLaunch& launch) {
  Function& function = functions_[{chosen_[kernel].module, launch.entry}];
  if (function != nullptr) return function;
  ASSAY_TRY(const Function found, driver_.function(chosen_[kernel].module, launch.entry));
  const auto bytes = static_cast<size_t>(launch.shared_bytes);
  const bool shares = shared_percent_ > 0;
  if (!shares && launch.shared_bytes > kGranted && plan_.dims.q_len == 1) {
    ASSAY_CHECK(driver_.share_memory(found, bytes, attention_percent(launch.shared_bytes)));
  } else if (chosen_[kernel].needs_cache) {
    ASSAY_CHECK(driver_.share_memory(found, bytes, kThroughCachePercent));
  } else if (shares || launch.shared_bytes > kGranted) {
    ASSAY_CHECK(driver_.share_memory(found, bytes, shares ? shared_percent_ : 100));
  }
  return function = found;
}

}  // namespace assay::engine::cuda
