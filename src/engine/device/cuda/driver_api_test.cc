// The driver's functions as declared by hand, against cuda.h: the same number of arguments, and
// each a pointer, or an integer of the same size.
#include "engine/device/cuda/driver_api.h"

#include <gtest/gtest.h>

#if __has_include(<cuda.h>)
#include <cuda.h>

#include "engine/codegen/cuda/same_call.h"

namespace assay::engine::cuda {
namespace {

#define ASSAY_CUDA_HOLD(member, symbol, arguments) \
  static_assert(same_call(decltype(DriverApi::member){}, decltype(&symbol){}), #symbol);
ASSAY_CUDA_DRIVER(ASSAY_CUDA_HOLD)
#undef ASSAY_CUDA_HOLD
static_assert(same_call(decltype(DriverApi::event_elapsed){}, decltype(&cuEventElapsedTime){}));
static_assert(same_call(decltype(DriverApi::encode_map){}, decltype(&cuTensorMapEncodeTiled){}));
// A call that isn't ours is noticed.
static_assert(!same_call(decltype(DriverApi::init){}, decltype(&cuDeviceGet){}));
static_assert(!same_call(decltype(DriverApi::memory_free){}, decltype(&cuCtxSetCurrent){}));

TEST(DriverApi, HasTheValuesOfTheHeader) {
  EXPECT_EQ(kOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(kNotReady, CUDA_ERROR_NOT_READY);
  EXPECT_EQ(static_cast<int>(kMultiprocessors), CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  EXPECT_EQ(static_cast<int>(kL2CacheBytes), CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  EXPECT_EQ(static_cast<int>(kComputeMajor), CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  EXPECT_EQ(static_cast<int>(kComputeMinor), CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  EXPECT_EQ(static_cast<int>(kMostSharedBytes), CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  EXPECT_EQ(static_cast<int>(kSharedCarveout), CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
  EXPECT_EQ(kCaptureThreadLocal, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  EXPECT_EQ(kNonBlocking, static_cast<unsigned>(CU_STREAM_NON_BLOCKING));
  EXPECT_EQ(kNoTime, static_cast<unsigned>(CU_EVENT_DISABLE_TIMING));
  EXPECT_EQ(sizeof(Uuid), sizeof(CUuuid));
  EXPECT_EQ(sizeof(TensorMap), sizeof(CUtensorMap));
  EXPECT_EQ(kElementsOf16Bits, CU_TENSOR_MAP_DATA_TYPE_UINT16);
  EXPECT_EQ(kSwizzleOf128Bytes, CU_TENSOR_MAP_SWIZZLE_128B);
  EXPECT_EQ(kPromotesTo256Bytes, CU_TENSOR_MAP_L2_PROMOTION_L2_256B);
  EXPECT_EQ(CU_TENSOR_MAP_INTERLEAVE_NONE, 0);
  EXPECT_EQ(CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE, 0);
}

TEST(DriverApi, LaunchesAsTheHeaderLaysItOut) {
  EXPECT_EQ(sizeof(LaunchConfig), sizeof(CUlaunchConfig));
  EXPECT_EQ(offsetof(LaunchConfig, threads_x), offsetof(CUlaunchConfig, blockDimX));
  EXPECT_EQ(offsetof(LaunchConfig, shared_bytes), offsetof(CUlaunchConfig, sharedMemBytes));
  EXPECT_EQ(offsetof(LaunchConfig, stream), offsetof(CUlaunchConfig, hStream));
  EXPECT_EQ(offsetof(LaunchConfig, attributes), offsetof(CUlaunchConfig, attrs));
  EXPECT_EQ(offsetof(LaunchConfig, attribute_count), offsetof(CUlaunchConfig, numAttrs));
  EXPECT_EQ(sizeof(LaunchAttribute), sizeof(CUlaunchAttribute));
  EXPECT_EQ(offsetof(LaunchAttribute, value), offsetof(CUlaunchAttribute, value));
  EXPECT_EQ(kBeginEarly, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
}

TEST(DriverApi, CopiesRowsAsTheHeaderLaysThemOut) {
  EXPECT_EQ(sizeof(RowsCopy), sizeof(CUDA_MEMCPY2D));
  EXPECT_EQ(offsetof(RowsCopy, from_type), offsetof(CUDA_MEMCPY2D, srcMemoryType));
  EXPECT_EQ(offsetof(RowsCopy, from), offsetof(CUDA_MEMCPY2D, srcDevice));
  EXPECT_EQ(offsetof(RowsCopy, from_pitch), offsetof(CUDA_MEMCPY2D, srcPitch));
  EXPECT_EQ(offsetof(RowsCopy, to_type), offsetof(CUDA_MEMCPY2D, dstMemoryType));
  EXPECT_EQ(offsetof(RowsCopy, to), offsetof(CUDA_MEMCPY2D, dstDevice));
  EXPECT_EQ(offsetof(RowsCopy, to_pitch), offsetof(CUDA_MEMCPY2D, dstPitch));
  EXPECT_EQ(offsetof(RowsCopy, width_bytes), offsetof(CUDA_MEMCPY2D, WidthInBytes));
  EXPECT_EQ(offsetof(RowsCopy, height), offsetof(CUDA_MEMCPY2D, Height));
  EXPECT_EQ(RowsCopy().from_type, CU_MEMORYTYPE_DEVICE);
}

}  // namespace
}  // namespace assay::engine::cuda

#else

TEST(DriverApi, IsHeldAgainstTheHeader) {
  GTEST_SKIP() << "no cuda.h here";
}

#endif
