// Products of many rows by NVIDIA's cuBLASLt, opened at run time.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/codegen/kernel_cache.h"
#include "engine/device/cuda/cublaslt_api.h"
#include "engine/device/cuda/gpu_memory.h"
#include "engine/tensor.h"

namespace assay::engine::cuda {

// Compute capability of the GPUs on which it scales each row of e4m3.
constexpr std::string_view kFp8Capability = "9.0";

// out [rows, outputs] = x [rows, inputs] . weight [outputs, inputs] transposed, sums in fp32 (true
// fp32 where the types are). Pitches in elements, from a row to the next.
struct LtShape {
  DType dtype = DType::kBF16;      // of x and the weight
  DType out_dtype = DType::kBF16;  // fp32, or `dtype`
  // x and the weight are in e4m3, with a scale for each of their rows: element = code * scale.
  bool fp8 = false;
  bool fast_sums = false;  // in fp8: sums may lose bits below some 14 on their way
  int64_t rows = 0, outputs = 0, inputs = 0;
  int64_t x_pitch = 0, weight_pitch = 0, out_pitch = 0;
  bool adds = false;  // the matrix at `addend`, like out
  bool bias = false;  // [outputs] of out_dtype, to each row
  friend auto operator<=>(const LtShape&, const LtShape&) = default;
};
// Microseconds of one product in both types, as LtShape has them: the library alone, by the
// algorithms that it is multiplied with, weights from memory.
struct LtContest {
  double fp8_us = 0, wide_us = 0;
};
struct LtOperands {
  Address x = 0, weight = 0, out = 0;
  Address addend = 0, bias = 0;             // if the shape has them; `addend` may be `out`
  Address x_scales = 0, weight_scales = 0;  // in fp8: [rows] and [outputs] of fp32
};

// One thread at a time. All but the weight is to be 64-byte aligned, the weight 256-byte. Errors
// are environment_errors that name the call and cuBLASLt's name for the failure.
class CublasLt {
 public:
  // The library of $ASSAY_CUBLASLT, else as open_cuda_library() finds it. Allocates the one
  // workspace that all products share, one behind the other. The driver must outlive the object.
  // `choices`: keeps the fastest algorithm of each shape, so that all processes of a machine
  // compute alike; without, the library's first choice is taken, unmeasured.
  static Result<std::unique_ptr<CublasLt>> open(Driver& driver, std::optional<KernelCache> choices);
  ~CublasLt();
  CublasLt(const CublasLt&) = delete;
  CublasLt& operator=(const CublasLt&) = delete;

  // Asks the library for algorithms, once a shape, and if no choice is kept measures which one is
  // the fastest: some milliseconds, and memory for copies of the weight. A failure here comes again
  // in multiply().
  ::assay::Status prepare(const LtShape& shape);
  // Measured by the first process of a machine that asks, and kept in the kernel cache for all
  // others. Absent: there is no cache, or no memory to measure in.
  Result<std::optional<LtContest>> contest(const LtShape& fp8, const LtShape& wide);
  // Into the driver's stream; may be recorded.
  ::assay::Status multiply(const LtShape& shape, const LtOperands& operands);

  // Shapes of all calls of multiply() but those while noting was off.
  const std::set<LtShape>& multiplied() const { return multiplied_; }
  void note(bool noted) { noted_ = noted; }

  const std::string& path() const { return path_; }        // of the library
  const std::string& version() const { return version_; }  // "13.1.0"

 private:
  // A product's descriptors and algorithm, given back with it.
  struct Plan {
    explicit Plan(const CublasLtApi& functions) : api(functions) {}
    ~Plan();
    Plan(const Plan&) = delete;
    Plan& operator=(const Plan&) = delete;
    const CublasLtApi& api;
    LtProduct product = nullptr;
    LtMatrix weight = nullptr, x = nullptr, out = nullptr;
    LtWishes wishes = nullptr;
    LtChoice choice;
  };

  CublasLt(Driver& driver, std::optional<KernelCache> choices)
      : driver_(driver), choices_(std::move(choices)) {}
  ::assay::Status look_up(void* library);
  ::assay::Status check(LtStatus status, std::string_view call) const;
  ::assay::Status describe(const LtShape& shape, Plan& plan) const;
  ::assay::Status choose(const LtShape& shape, Plan& plan);
  Result<size_t> fastest(const LtShape& shape, Plan& plan, std::span<const LtChoice> answers);
  KernelKey kept_by(std::string what) const;
  // Milliseconds by each answer, and infinity for one that doesn't work; empty: no memory.
  Result<std::vector<double>> measure(const LtShape& shape, Plan& plan,
                                      std::span<const LtChoice> answers);
  ::assay::Status set(Plan& plan, LtProductAttribute which, const auto& value) const;
  ::assay::Status set_scales(Plan& plan, Address weight, Address x) const;
  ::assay::Status multiply_by(const LtShape& shape, Plan& plan, const LtAlgorithm& algorithm,
                              const LtOperands& operands);
  Result<Plan*> plan_for(const LtShape& shape);

  Driver& driver_;
  std::optional<KernelCache> choices_;
  CublasLtApi api_;
  std::string path_, version_;
  GpuBlock workspace_;
  LtHandle handle_ = nullptr;
  std::map<LtShape, std::unique_ptr<Plan>> plans_;
  std::map<std::pair<LtShape, LtShape>, std::optional<LtContest>> contests_;
  std::set<LtShape> multiplied_;
  bool noted_ = true;
};

}  // namespace assay::engine::cuda
