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
#include "engine/device/device.h"
#include "engine/graph/dim.h"
#include "engine/plan/step_plan.h"

namespace assay::engine::cuda {

// Wishes for the products that may be in fp8.
struct Fp8Wishes {
  bool fast_sums = false;  // LtShape::fast_sums
  bool always = false;     // even where the weights' type is faster
};

// Memory for weights decoded from their blocks, which a device's steps share: the stream runs one
// step at a time. A step that was recorded with less memory keeps that until it asks again.
class DecodedWeight {
 public:
  explicit DecodedWeight(Driver& driver) : driver_(driver) {}  // which must outlive the object

  // At least so many bytes: what others have, or more, which those who ask later get too.
  Result<std::shared_ptr<const GpuBlock>> room(size_t bytes);

 private:
  Driver& driver_;
  std::weak_ptr<const GpuBlock> memory_;  // gone with the last step that has it
};

// cuBLASLt, opened when it is first needed: half a gigabyte, that few rows do without.
class LazyCublasLt {
 public:
  // Both must outlive the object. The reason for not using the library becomes a note, once.
  LazyCublasLt(Driver& driver, std::vector<std::string>& notes, Fp8Wishes fp8 = {})
      : driver_(driver), notes_(notes), fp8_(fp8), decoded_(driver) {}

  // Keeps choices there; without a cache, the library's own are taken.
  void keep_choices_in(const std::optional<KernelCache>& cache) { cache_ = cache; }

  CublasLt* get();  // null: kernels made for a few rows do it all
  const CublasLt* opened() const { return library_.get(); }  // null: not yet, or not to be had
  void note(const Error& error);
  const Fp8Wishes& fp8() const { return fp8_; }
  // Measurements that chose a product's type, each once.
  std::vector<TypeContest>& contests() { return contests_; }
  const std::vector<TypeContest>& contests() const { return contests_; }
  DecodedWeight& decoded() { return decoded_; }  // the library multiplies it

 private:
  Driver& driver_;
  std::vector<std::string>& notes_;
  Fp8Wishes fp8_;
  DecodedWeight decoded_;
  std::vector<TypeContest> contests_;
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
  // True if the library's product in fp8 takes less time in a run of these sizes than in the
  // weight's type, or if nobody can tell. `rounds`: a kernel of its own rounds the rows of x.
  Result<bool> pays_in_fp8(const Kernel& kernel, const DimValues& dims, bool rounds);
  // `arguments`: the addresses of the kernel's buffers. `decoded`: of a weight in blocks, its
  // place. `rounded`: of a shape in fp8.
  ::assay::Status multiply(const Kernel& kernel, const LtShape& shape,
                           std::span<const Address> arguments, Address decoded,
                           const Fp8Weight& rounded);

  bool always_fp8() const { return library_.fp8().always; }
  // Written by assay_prologue, or by assay_epilogue_to_codes of the product before.
  Address inputs() const { return memory_.address(); }
  Address products() const { return memory_.address() + products_at_; }  // assay_epilogue reads
  // Written by assay_decode, of the step's turn-th weight in blocks that the library multiplies. It
  // may begin before the product ahead has ended, which reads the other of two places.
  Address decoded(size_t turn) const {
    return decoded_ ? decoded_->address() + (turn % 2 == 0 ? 0 : second_at_) : 0;
  }

 private:
  Driver& driver_;
  LazyCublasLt& library_;
  GpuBlock memory_;
  std::shared_ptr<const GpuBlock> decoded_;
  size_t second_at_ = 0;
  size_t products_at_ = 0, products_bytes_ = 0;
};

// A buffer of a plan's kernel, and the narrower type that it may have.
struct NarrowBuffer {
  size_t kernel = 0, buffer = 0;
  DType dtype = DType::kBF16;
};

// Computed values that only products without a prologue read, and those of 16-bit weights, are kept
// in the weights' type: a library multiplies that. Queries that attention on tensor cores rounds
// are kept in the cache's. Kernels widen and round as they load and store. In prompts alone, of any
// length, so that one whose length has become a symbol is computed as if it were a constant; and in
// eager steps, which are of prompts and of decoding.
void narrow_values(StepPlan& plan, bool eager = false);
// The buffers of the same values in a step of decoding, for a caller that knows its rows: with few
// rows, products take fp32.
std::vector<NarrowBuffer> narrow_buffers(const StepPlan& plan, bool eager = false);

// Sets ProductKernel::codes_output where the next kernel alone reads what a product's epilogue
// writes, and multiplies in fp8, and nowhere else. Behind narrow_values().
void pair_codes(StepPlan& plan);
// Likewise ProductKernel::tiled_output and the next kernel's tiled_input, where both multiply by
// tiles in runs of the kernels' run_sizes.
void pair_tiles(StepPlan& plan);

}  // namespace assay::engine::cuda
