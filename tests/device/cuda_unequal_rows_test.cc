// Batches whose rows have lengths of their own, on a GPU. Skipped where there is none.
#include "cuda_driver.h"
#include "engine/device/cuda/cuda_device.h"
#include "engine/device/unequal_rows.h"

namespace assay::engine {
namespace {

class CudaUnequalRows : public testing::TestWithParam<size_t> {
 protected:
  void SetUp() override {
    if (!assay::test::CudaDriver::open()) GTEST_SKIP() << "no GPU here";
  }
};

TEST_P(CudaUnequalRows, GiveWhatEachGivesAlone) {
  test::UnequalRows rows(families()[GetParam()]);
  const auto device = CudaDevice::open({});
  ASSERT_TRUE(device) << device.error().message;
  for (const CacheKind cache : {CacheKind::kStatic, CacheKind::kDynamic}) {
    SCOPED_TRACE(cache == CacheKind::kStatic ? "static cache" : "dynamic cache");
    rows.run(**device, false, cache, false);
    rows.run(**device, true, cache, false);
  }
  rows.run(**device, true, CacheKind::kStatic, true);
  for (const bool compiled : {false, true}) {
    SCOPED_TRACE(compiled ? "named rows, compiled" : "named rows, eager");
    rows.run(**device, compiled, CacheKind::kStatic, compiled, CacheRows::kNamed);
  }
}

std::string name_of(const size_t& family) {
  return families()[family].name;
}
std::vector<size_t> all_families() {
  std::vector<size_t> all;
  for (size_t family = 0; family < families().size(); ++family) all.push_back(family);
  return all;
}
// The processor's driver computes what session_test asks of every family; here one is enough.
INSTANTIATE_TEST_SUITE_P(Families, CudaUnequalRows,
                         testing::ValuesIn(assay::test::chosen(all_families(), &name_of, {"llama"},
                                                               {"gpt2", "qwen2"})),
                         [](const auto& family) { return name_of(family.param); });

}  // namespace
}  // namespace assay::engine
