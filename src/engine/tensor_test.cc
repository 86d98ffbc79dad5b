#include "engine/tensor.h"

#include <gtest/gtest.h>

namespace assay::engine {
namespace {

TEST(DTypeSize, IsKnownOfEachTypeAndOfNoOther) {
  EXPECT_EQ(dtype_size_bytes(DType::kF32), 4u);
  EXPECT_EQ(dtype_size_bytes(DType::kI32), 4u);
  EXPECT_EQ(dtype_size_bytes(DType::kF16), 2u);
  EXPECT_EQ(dtype_size_bytes(DType::kBF16), 2u);
#ifdef NDEBUG
  EXPECT_EQ(dtype_size_bytes(static_cast<DType>(99)), 0u);
#else
  EXPECT_DEATH(dtype_size_bytes(static_cast<DType>(99)), "no such type");
#endif
}

}  // namespace
}  // namespace assay::engine
