// Our matrices are row by row, the library's column by column: what it is asked for is out
// transposed, weight times x transposed.
#include "engine/device/cuda/cublaslt.h"

#include <dlfcn.h>

#include <type_traits>

#include "engine/codegen/cuda/cuda_library.h"

namespace assay::engine::cuda {
namespace {

constexpr uint64_t kWorkspaceBytes = uint64_t{32} << 20;  // what NVIDIA asks for on Hopper
constexpr uint32_t kAlignmentBytes = 64;                  // of values in an arena

LtDataType data_type(DType dtype) {
  return dtype == DType::kF32 ? kRealF32 : dtype == DType::kF16 ? kRealF16 : kRealBF16;
}

void* pointer(Address address) {
  return pointer_to(address);
}

}  // namespace

CublasLt::Plan::~Plan() {
  if (wishes != nullptr) api.wishes_destroy(wishes);
  for (const LtMatrix matrix : {weight, x, out}) {
    if (matrix != nullptr) api.matrix_destroy(matrix);
  }
  if (product != nullptr) api.product_destroy(product);
}

::assay::Status CublasLt::check(LtStatus status, std::string_view call) const {
  if (status == 0) return {};
  return environment_error("{}: {}", call, api_.status_name(status));
}

::assay::Status CublasLt::look_up(void* library) {
  const auto find = [&](const char* name, auto*& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    return function != nullptr;
  };
#define ASSAY_CUBLASLT_FIND(member, symbol, arguments) \
  if (!find(#symbol, api_.member))                     \
    return environment_error("{}: expected the function {}, found none", path_, #symbol);
  ASSAY_CUBLASLT(ASSAY_CUBLASLT_FIND)
#undef ASSAY_CUBLASLT_FIND
  if (!find("cublasLtGetVersion", api_.version) ||
      !find("cublasLtGetStatusName", api_.status_name)) {
    return environment_error("{}: expected cuBLASLt's functions, found some missing", path_);
  }
  return {};
}

Result<std::unique_ptr<CublasLt>> CublasLt::open(Driver& driver) {
  ASSAY_TRY(const CudaLibrary found, open_cuda_library("cublasLt", "ASSAY_CUBLASLT"));
  std::unique_ptr<CublasLt> library(new CublasLt(driver));
  library->path_ = found.path;
  ASSAY_CHECK(library->look_up(found.handle));
  const size_t version = library->api_.version();
  library->version_ = fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
  ASSAY_TRY(library->workspace_, GpuBlock::allocate(driver, kWorkspaceBytes));
  ASSAY_CHECK(library->check(library->api_.create(&library->handle_), "cublasLtCreate"));
  return library;
}

CublasLt::~CublasLt() {
  plans_.clear();
  if (handle_ != nullptr) api_.destroy(handle_);
}

::assay::Status CublasLt::describe(const LtShape& shape, Plan& plan) const {
  const LtDataType in = data_type(shape.dtype), out = data_type(shape.out_dtype);
  const auto rows = static_cast<uint64_t>(shape.rows);
  const auto outputs = static_cast<uint64_t>(shape.outputs);
  const auto inputs = static_cast<uint64_t>(shape.inputs);
  const auto matrix = [&](LtMatrix& to, LtDataType type, uint64_t height, uint64_t width,
                          int64_t pitch) {
    return check(api_.matrix_create(&to, type, height, width, pitch), "cublasLtMatrixLayoutCreate");
  };
  ASSAY_CHECK(
      check(api_.product_create(&plan.product, kComputeF32, kRealF32), "cublasLtMatmulDescCreate"));
  ASSAY_CHECK(check(api_.product_set(plan.product, kTransposeA, &kTransposed, sizeof kTransposed),
                    "cublasLtMatmulDescSetAttribute"));
  if (shape.bias) {
    ASSAY_CHECK(
        check(api_.product_set(plan.product, kEpilogue, &kEpilogueBias, sizeof kEpilogueBias),
              "cublasLtMatmulDescSetAttribute"));
  }
  ASSAY_CHECK(matrix(plan.weight, in, inputs, outputs, shape.weight_pitch));
  ASSAY_CHECK(matrix(plan.x, in, inputs, rows, shape.x_pitch));
  return matrix(plan.out, out, outputs, rows, shape.out_pitch);
}

::assay::Status CublasLt::choose(const LtShape& shape, Plan& plan) const {
  const auto wish = [&](LtWish which, const auto& value) {
    return check(api_.wishes_set(plan.wishes, which, &value, sizeof value),
                 "cublasLtMatmulPreferenceSetAttribute");
  };
  ASSAY_CHECK(check(api_.wishes_create(&plan.wishes), "cublasLtMatmulPreferenceCreate"));
  ASSAY_CHECK(wish(kMostWorkspaceBytes, kWorkspaceBytes));
  for (const LtWish alignment : {kAlignmentB, kAlignmentC, kAlignmentD}) {
    ASSAY_CHECK(wish(alignment, kAlignmentBytes));
  }
  int found = 0;
  ASSAY_CHECK(check(api_.choose(handle_, plan.product, plan.weight, plan.x, plan.out, plan.out,
                                plan.wishes, 1, &plan.choice, &found),
                    "cublasLtMatmulAlgoGetHeuristic"));
  if (found > 0) return check(plan.choice.status, "cublasLtMatmulAlgoGetHeuristic");
  return environment_error(
      "cublasLtMatmulAlgoGetHeuristic: expected an algorithm for {} x {} x {}, found none",
      shape.rows, shape.outputs, shape.inputs);
}

Result<CublasLt::Plan*> CublasLt::plan_for(const LtShape& shape) {
  if (const auto known = plans_.find(shape); known != plans_.end()) return known->second.get();
  auto plan = std::make_unique<Plan>(api_);
  ASSAY_CHECK(describe(shape, *plan));
  ASSAY_CHECK(choose(shape, *plan));
  return plans_.emplace(shape, std::move(plan)).first->second.get();
}

::assay::Status CublasLt::prepare(const LtShape& shape) {
  ASSAY_TRY([[maybe_unused]] const Plan* const plan, plan_for(shape));
  return {};
}

::assay::Status CublasLt::multiply(const LtShape& shape, const LtOperands& operands) {
  ASSAY_TRY(Plan* const plan, plan_for(shape));
  if (shape.bias) {
    const void* bias = pointer(operands.bias);
    ASSAY_CHECK(check(api_.product_set(plan->product, kBiasPointer, &bias, sizeof bias),
                      "cublasLtMatmulDescSetAttribute"));
  }
  const float one = 1, addend = shape.adds ? 1 : 0;
  void* out = pointer(operands.out);
  return check(api_.multiply(handle_, plan->product, &one, pointer(operands.weight), plan->weight,
                             pointer(operands.x), plan->x, &addend,
                             shape.adds ? pointer(operands.addend) : out, plan->out, out, plan->out,
                             &plan->choice.algorithm, pointer(workspace_.address()),
                             kWorkspaceBytes, driver_.stream()),
               "cublasLtMatmul");
}

}  // namespace assay::engine::cuda
