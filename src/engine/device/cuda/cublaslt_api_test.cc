// cuBLASLt's functions as declared by hand, against cublasLt.h: the same number of arguments, and
// each a pointer, or an integer of the same size.
#include "engine/device/cuda/cublaslt_api.h"

#include <gtest/gtest.h>

#if __has_include(<cublasLt.h>)
#include <cublasLt.h>

#include "engine/codegen/cuda/same_call.h"

namespace assay::engine::cuda {
namespace {

#define ASSAY_CUBLASLT_HOLD(member, symbol, arguments) \
  static_assert(same_call(decltype(CublasLtApi::member){}, decltype(&symbol){}), #symbol);
ASSAY_CUBLASLT(ASSAY_CUBLASLT_HOLD)
#undef ASSAY_CUBLASLT_HOLD
static_assert(same_call(decltype(CublasLtApi::version){}, decltype(&cublasLtGetVersion){}));
static_assert(same_call(decltype(CublasLtApi::status_name){}, decltype(&cublasLtGetStatusName){}));
// A call that isn't ours is noticed.
static_assert(!same_call(decltype(CublasLtApi::create){}, decltype(&cublasLtMatrixLayoutCreate){}));

TEST(CublasLtApi, HasTheValuesOfTheHeader) {
  EXPECT_EQ(static_cast<int>(kComputeF32), CUBLAS_COMPUTE_32F);
  EXPECT_EQ(static_cast<int>(kRealF32), CUDA_R_32F);
  EXPECT_EQ(static_cast<int>(kRealF16), CUDA_R_16F);
  EXPECT_EQ(static_cast<int>(kRealBF16), CUDA_R_16BF);
  EXPECT_EQ(static_cast<int>(kTransposeA), CUBLASLT_MATMUL_DESC_TRANSA);
  EXPECT_EQ(static_cast<int>(kEpilogue), CUBLASLT_MATMUL_DESC_EPILOGUE);
  EXPECT_EQ(static_cast<int>(kBiasPointer), CUBLASLT_MATMUL_DESC_BIAS_POINTER);
  EXPECT_EQ(static_cast<int>(kRealE4M3), CUDA_R_8F_E4M3);
  EXPECT_EQ(static_cast<int>(kScalesPointerA), CUBLASLT_MATMUL_DESC_A_SCALE_POINTER);
  EXPECT_EQ(static_cast<int>(kScalesPointerB), CUBLASLT_MATMUL_DESC_B_SCALE_POINTER);
  EXPECT_EQ(static_cast<int>(kFastSums), CUBLASLT_MATMUL_DESC_FAST_ACCUM);
  EXPECT_EQ(static_cast<int>(kScalesModeA), CUBLASLT_MATMUL_DESC_A_SCALE_MODE);
  EXPECT_EQ(static_cast<int>(kScalesModeB), CUBLASLT_MATMUL_DESC_B_SCALE_MODE);
  EXPECT_EQ(kScaleOfEachRow, CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F);
  EXPECT_EQ(kTransposed, CUBLAS_OP_T);
  EXPECT_EQ(static_cast<int>(kEpilogueBias), CUBLASLT_EPILOGUE_BIAS);
  EXPECT_EQ(static_cast<int>(kMostWorkspaceBytes), CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
  EXPECT_EQ(static_cast<int>(kAlignmentB), CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
  EXPECT_EQ(static_cast<int>(kAlignmentC), CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
  EXPECT_EQ(static_cast<int>(kAlignmentD), CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
}

TEST(CublasLtApi, LaysItsAnswerOutAsTheHeaderDoes) {
  EXPECT_EQ(sizeof(LtAlgorithm), sizeof(cublasLtMatmulAlgo_t));
  EXPECT_EQ(sizeof(LtChoice), sizeof(cublasLtMatmulHeuristicResult_t));
  EXPECT_EQ(offsetof(LtChoice, workspace_bytes),
            offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
  EXPECT_EQ(offsetof(LtChoice, status), offsetof(cublasLtMatmulHeuristicResult_t, state));
}

}  // namespace
}  // namespace assay::engine::cuda

#else

TEST(CublasLtApi, IsHeldAgainstTheHeader) {
  GTEST_SKIP() << "no cublasLt.h here";
}

#endif
