// Products of many rows on a GPU: cuBLASLt, between the kernels that library_product() asks for.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/codegen/cuda/library_product.h"
#include "engine/device/cuda/cublaslt.h"
#include "engine/device/cuda/gpu_weights.h"
#include "engine/graph/dim.h"
#include "engine/plan/step_plan.h"

namespace assay::engine::cuda {

// cuBLASLt, opened when it is first needed: half a gigabyte, that few rows do without.
class LazyCublasLt {
 public:
  // Both must outlive the object. The reason for not using the library becomes a note, once.
  LazyCublasLt(Driver& driver, std::vector<std::string>& notes, bool fast_sums = false)
      : driver_(driver), notes_(notes), fast_sums_(fast_sums) {}

  // Keeps choices there; without a cache, the library's own are taken.
  void keep_choices_in(const std::optional<KernelCache>& cache) { cache_ = cache; }

  CublasLt* get();  // null: kernels made for a few rows do it all
  const CublasLt* opened() const { return library_.get(); }  // null: not yet, or not to be had
  void note(const Error& error);
  bool fast_sums() const { return fast_sums_; }  // of products in fp8

 private:
  Driver& driver_;
  std::vector<std::string>& notes_;
  bool fast_sums_;
  std::optional<KernelCache> cache_;
  bool tried_ = false;
  std::unique_ptr<CublasLt> library_;
};

// Memory of one step for its products of many rows, beyond its arena.
class ManyRows {
 public:
  ManyRows(Driver& driver, LazyCublasLt& library) : driver_(driver), library_(library) {}

  // Memory between library and kernels for runs of these sizes, which decide on the forms of the
  // plan's kernels, and for those of earlier calls. True: addresses from before are void.
  Result<bool> reserve(const StepPlan& plan, const DimValues& dims);

  // The product as the library computes it in a run of these sizes; absent if the kernel does it
  // by itself.
  std::optional<LtShape> shape(const Kernel& kernel, const DimValues& dims);
  // `arguments`: the addresses of the kernel's buffers. `rounded`: of a shape in fp8.
  ::assay::Status multiply(const Kernel& kernel, const LtShape& shape,
                           std::span<const Address> arguments, const Fp8Weight& rounded);

  // Written by assay_prologue, or by assay_epilogue_to_codes of the product before.
  Address inputs() const { return memory_.address(); }
  Address products() const { return memory_.address() + products_at_; }  // assay_epilogue reads

 private:
  Driver& driver_;
  LazyCublasLt& library_;
  GpuBlock memory_;
  size_t products_at_ = 0, products_bytes_ = 0;
};

// A buffer of a plan's kernel, and the narrower type that it may have.
struct NarrowBuffer {
  size_t kernel = 0, buffer = 0;
  DType dtype = DType::kBF16;
};

// Computed values that only products without a prologue read, and those of 16-bit weights, are kept
// in the weights' type: a library multiplies that. Kernels widen and round as they load and
// store. In prompts alone, of any length, so that one whose length has become a symbol is computed
// as if it were a constant; and in eager steps, which are of prompts and of decoding.
void narrow_values(StepPlan& plan, bool eager = false);
// The buffers of the same values in a step of decoding, for a caller that knows its rows: with few
// rows, products take fp32.
std::vector<NarrowBuffer> narrow_buffers(const StepPlan& plan, bool eager = false);

// Sets ProductKernel::codes_output where the next kernel alone reads what a product's epilogue
// writes, and multiplies in fp8. Behind narrow_values().
void pair_codes(StepPlan& plan);

}  // namespace assay::engine::cuda
