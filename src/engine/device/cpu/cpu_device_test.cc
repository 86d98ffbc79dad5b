// Batches whose rows have lengths of their own, by the processor's executors.
#include "engine/device/cpu/cpu_device.h"

#include "engine/device/unequal_rows.h"

namespace assay::engine {
namespace {

class CpuUnequalRows : public testing::TestWithParam<size_t> {};

TEST_P(CpuUnequalRows, GiveWhatEachGivesAlone) {
  test::UnequalRows rows(families()[GetParam()]);
  CpuDevice device({.threads = 2});
  for (const CacheKind cache : {CacheKind::kStatic, CacheKind::kDynamic}) {
    SCOPED_TRACE(cache == CacheKind::kStatic ? "static cache" : "dynamic cache");
    rows.run(device, false, cache, false);
    rows.run(device, true, cache, false);
  }
  rows.run(device, true, CacheKind::kStatic, true);
  for (const bool compiled : {false, true}) {
    SCOPED_TRACE(compiled ? "named rows, compiled" : "named rows, eager");
    rows.run(device, compiled, CacheKind::kStatic, compiled, CacheRows::kNamed);
  }
}

INSTANTIATE_TEST_SUITE_P(Families, CpuUnequalRows, testing::Range(size_t{0}, families().size()),
                         [](const auto& family) { return families()[family.param].name; });

}  // namespace
}  // namespace assay::engine
