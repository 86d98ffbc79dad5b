// NVRTC's functions as declared by hand, against nvrtc.h: the same number of arguments, and each a
// pointer, or an integer of the same size.
#include "engine/codegen/cuda/nvrtc_api.h"

#include <gtest/gtest.h>

#if __has_include(<nvrtc.h>)
#include <nvrtc.h>

#include "engine/codegen/cuda/same_call.h"

namespace assay::engine {
namespace {

#define ASSAY_NVRTC_HOLD(member, symbol, arguments) \
  static_assert(same_call(decltype(NvrtcApi::member){}, decltype(&symbol){}), #symbol);
ASSAY_NVRTC(ASSAY_NVRTC_HOLD)
#undef ASSAY_NVRTC_HOLD
static_assert(same_call(decltype(NvrtcApi::error_text){}, decltype(&nvrtcGetErrorString){}));
// A call that isn't ours is noticed.
static_assert(!same_call(decltype(NvrtcApi::compile){}, decltype(&nvrtcGetCUBIN){}));

TEST(NvrtcApi, HasTheValuesOfTheHeader) {
  EXPECT_EQ(sizeof(NvrtcStatus), sizeof(nvrtcResult));
  EXPECT_EQ(0, NVRTC_SUCCESS);
}

}  // namespace
}  // namespace assay::engine

#else

TEST(NvrtcApi, IsHeldAgainstTheHeader) {
  GTEST_SKIP() << "no nvrtc.h here";
}

#endif
