// The functions of cuBLASLt that the engine calls, as declared in cublasLt.h and looked up at run
// time. cublaslt_api_test.cc holds every line against that header where a machine has it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/device/cuda/driver_api.h"

namespace assay::engine::cuda {

using LtStatus = int;  // cublasStatus_t; 0: success
using LtHandle = struct cublasLtContext*;
using LtProduct = struct cublasLtMatmulDescOpaque*;       // cublasLtMatmulDesc_t
using LtMatrix = struct cublasLtMatrixLayoutOpaque*;      // cublasLtMatrixLayout_t
using LtWishes = struct cublasLtMatmulPreferenceOpaque*;  // cublasLtMatmulPreference_t

enum LtComputeType : int { kComputeF32 = 68 };  // CUBLAS_COMPUTE_32F: no TF32
enum LtDataType : int {                         // cudaDataType
  kRealF32 = 0,
  kRealF16 = 2,
  kRealBF16 = 14,
  kRealE4M3 = 28,
};
enum LtProductAttribute : int {  // CUBLASLT_MATMUL_DESC_...
  kTransposeA = 3,
  kEpilogue = 7,
  kBiasPointer = 8,
  kScalesPointerA = 17,
  kScalesPointerB = 18,
  kFastSums = 25,  // ..._FAST_ACCUM
  kScalesModeA = 31,
  kScalesModeB = 32,
};
constexpr int32_t kScaleOfEachRow = 3;  // CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F
constexpr int32_t kTransposed = 1;      // CUBLAS_OP_T
constexpr uint32_t kEpilogueBias = 4;   // CUBLASLT_EPILOGUE_BIAS
enum LtWish : int {                     // CUBLASLT_MATMUL_PREF_...
  kMostWorkspaceBytes = 1,
  kAlignmentB = 6,  // ..._MIN_ALIGNMENT_B_BYTES
  kAlignmentC = 7,
  kAlignmentD = 8,
};

struct LtAlgorithm {  // cublasLtMatmulAlgo_t
  uint64_t data[8] = {};
};
struct LtChoice {  // cublasLtMatmulHeuristicResult_t
  LtAlgorithm algorithm;
  size_t workspace_bytes = 0;
  LtStatus status = 0;
  float waves = 0;
  int reserved[4] = {};
};

// X(member, symbol, arguments)
#define ASSAY_CUBLASLT(X)                                                                          \
  X(create, cublasLtCreate, (LtHandle*))                                                           \
  X(destroy, cublasLtDestroy, (LtHandle))                                                          \
  X(product_create, cublasLtMatmulDescCreate, (LtProduct*, LtComputeType, LtDataType))             \
  X(product_destroy, cublasLtMatmulDescDestroy, (LtProduct))                                       \
  X(product_set, cublasLtMatmulDescSetAttribute,                                                   \
    (LtProduct, LtProductAttribute, const void*, size_t))                                          \
  X(matrix_create, cublasLtMatrixLayoutCreate,                                                     \
    (LtMatrix*, LtDataType, uint64_t, uint64_t, int64_t))                                          \
  X(matrix_destroy, cublasLtMatrixLayoutDestroy, (LtMatrix))                                       \
  X(wishes_create, cublasLtMatmulPreferenceCreate, (LtWishes*))                                    \
  X(wishes_destroy, cublasLtMatmulPreferenceDestroy, (LtWishes))                                   \
  X(wishes_set, cublasLtMatmulPreferenceSetAttribute, (LtWishes, LtWish, const void*, size_t))     \
  X(choose, cublasLtMatmulAlgoGetHeuristic,                                                        \
    (LtHandle, LtProduct, LtMatrix, LtMatrix, LtMatrix, LtMatrix, LtWishes, int, LtChoice*, int*)) \
  X(multiply, cublasLtMatmul,                                                                      \
    (LtHandle, LtProduct, const void*, const void*, LtMatrix, const void*, LtMatrix, const void*,  \
     const void*, LtMatrix, void*, LtMatrix, const LtAlgorithm*, void*, size_t, Stream))

struct CublasLtApi {
#define ASSAY_CUBLASLT_MEMBER(member, symbol, arguments) LtStatus(*member) arguments = nullptr;
  ASSAY_CUBLASLT(ASSAY_CUBLASLT_MEMBER)
#undef ASSAY_CUBLASLT_MEMBER
  size_t (*version)() = nullptr;                   // cublasLtGetVersion: 130100
  const char* (*status_name)(LtStatus) = nullptr;  // cublasLtGetStatusName
};

}  // namespace assay::engine::cuda
