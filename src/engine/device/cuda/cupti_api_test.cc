// CUPTI's functions and records as declared by hand, against cupti.h: functions with the same
// number of arguments, and each a pointer, or an integer of the same size.
#include "engine/device/cuda/cupti_api.h"

#include <gtest/gtest.h>

#include <cstddef>

#if __has_include(<cupti.h>)
#include <cupti.h>

#include "engine/codegen/cuda/same_call.h"
#endif

// Whose names of the newest records these are.
#if defined(CUPTI_API_VERSION) && CUPTI_API_VERSION / 10000 == 13

namespace assay::engine::cuda {
namespace {

#define ASSAY_CUPTI_HOLD(member, symbol, arguments) \
  static_assert(same_call(decltype(CuptiApi::member){}, decltype(&symbol){}), #symbol);
ASSAY_CUPTI(ASSAY_CUPTI_HOLD)
#undef ASSAY_CUPTI_HOLD
static_assert(same_call(BufferRequested{}, CUpti_BuffersCallbackRequestFunc{}));
static_assert(same_call(BufferCompleted{}, CUpti_BuffersCallbackCompleteFunc{}));
// A call that isn't ours is noticed.
static_assert(!same_call(decltype(CuptiApi::flush){}, decltype(&cuptiGetVersion){}));

#define ASSAY_SAME_PLACE(ours, member, theirs, theirs_member) \
  EXPECT_EQ(offsetof(ours, member), offsetof(theirs, theirs_member))

TEST(CuptiApi, RecordsBeginAsTheHeaderHasThem) {
  ASSAY_SAME_PLACE(KernelRecord, registers, CUpti_ActivityKernel10, registersPerThread);
  ASSAY_SAME_PLACE(KernelRecord, start, CUpti_ActivityKernel10, start);
  ASSAY_SAME_PLACE(KernelRecord, end, CUpti_ActivityKernel10, end);
  ASSAY_SAME_PLACE(KernelRecord, grid, CUpti_ActivityKernel10, gridX);
  ASSAY_SAME_PLACE(KernelRecord, static_shared_bytes, CUpti_ActivityKernel10, staticSharedMemory);
  ASSAY_SAME_PLACE(KernelRecord, dynamic_shared_bytes, CUpti_ActivityKernel10, dynamicSharedMemory);
  ASSAY_SAME_PLACE(KernelRecord, name, CUpti_ActivityKernel10, name);
  ASSAY_SAME_PLACE(TransferRecord, start, CUpti_ActivityMemcpy6, start);
  ASSAY_SAME_PLACE(TransferRecord, end, CUpti_ActivityMemcpy6, end);
  ASSAY_SAME_PLACE(TransferRecord, start, CUpti_ActivityMemset4, start);
  ASSAY_SAME_PLACE(CallRecord, function, CUpti_ActivityAPI, cbid);
  ASSAY_SAME_PLACE(CallRecord, start, CUpti_ActivityAPI, start);
  ASSAY_SAME_PLACE(CallRecord, end, CUpti_ActivityAPI, end);
  EXPECT_EQ(kKernelKind, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  EXPECT_EQ(kCopyKind, CUPTI_ACTIVITY_KIND_MEMCPY);
  EXPECT_EQ(kFillKind, CUPTI_ACTIVITY_KIND_MEMSET);
  EXPECT_EQ(kCallKind, CUPTI_ACTIVITY_KIND_DRIVER);
  EXPECT_EQ(kDriverDomain, CUPTI_CB_DOMAIN_DRIVER_API);
  EXPECT_EQ(kFlushForced, static_cast<uint32_t>(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
}

}  // namespace
}  // namespace assay::engine::cuda

#else

TEST(CuptiApi, RecordsBeginAsTheHeaderHasThem) {
  GTEST_SKIP() << "no cupti.h of CUDA 13 on this machine";
}

#endif
