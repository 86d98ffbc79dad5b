// Runs the promises of sessions on every device on a GPU, in fp32. Skipped where there is none.
#include <tuple>

#include "cuda_driver.h"
#include "engine/session/session_properties.h"

namespace assay::engine {
namespace {

using test::SessionProperties;

class CudaProperties : public testing::TestWithParam<std::tuple<size_t, size_t>> {
 protected:
  void SetUp() override {
    if (!assay::test::CudaDriver::open()) GTEST_SKIP() << "no GPU here";
  }
};

TEST_P(CudaProperties, Hold) {
  const auto [family, property] = GetParam();
  SessionOptions options{.dtype = DType::kF32, .threads = 2, .gpu = 0};
  options.compile.kernel_cache = assay::test::kernels_of_all_cases();
  SessionProperties properties(families()[family], options, 1e-4);
  (properties.*SessionProperties::all()[property].property)();
}

INSTANTIATE_TEST_SUITE_P(All, CudaProperties,
                         testing::Combine(testing::Range(size_t{0}, families().size()),
                                          testing::Range(size_t{0},
                                                         SessionProperties::all().size())),
                         [](const auto& test) {
                           return families()[std::get<0>(test.param)].name + "_" +
                                  SessionProperties::all()[std::get<1>(test.param)].name;
                         });

}  // namespace
}  // namespace assay::engine
