// Random schedules of requests in slots on a GPU. Skipped where there is none.
#include "cuda_driver.h"
#include "engine/device/cuda/cuda_device.h"
#include "engine/serving/schedules.h"

namespace assay::engine {
namespace {

class CudaBatch : public testing::TestWithParam<std::tuple<size_t, bool>> {
 protected:
  void SetUp() override {
    if (!assay::test::CudaDriver::open()) GTEST_SKIP() << "no GPU here";
  }
};

TEST_P(CudaBatch, GivesEachRequestItsTokens) {
  const auto [family, compiled] = GetParam();
  ModelOptions options{.threads = 2, .gpu = 0};
  options.compiler.kernel_cache = assay::test::kernels_of_all_cases();
  test::Schedules schedules(families()[family], options, compiled);
  auto& device = dynamic_cast<CudaDevice&>(schedules.batch().model().device());
  const int64_t count = assay::test::in_the_soak() ? 40 : 6;
  schedules.run(assay::test::on_the_processor() ? count : 1000, 1,
                [&](std::byte* to, size_t bytes) {
                  return device.driver().fill(reinterpret_cast<cuda::Address>(to), 0xff, bytes);
                });
}

std::string name_of(const std::tuple<size_t, bool>& of) {
  return families()[std::get<0>(of)].name + (std::get<1>(of) ? "_compiled" : "_eager");
}
std::vector<std::tuple<size_t, bool>> all_cases() {
  std::vector<std::tuple<size_t, bool>> all;
  for (size_t family = 0; family < families().size(); ++family) {
    for (const bool compiled : {false, true}) all.emplace_back(family, compiled);
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(
    Families, CudaBatch,
    testing::ValuesIn(assay::test::chosen(all_cases(), &name_of, {"llama_compiled"},
                                          {"llama_eager", "gpt2_compiled", "qwen2_compiled"})),
    [](const auto& test) { return name_of(test.param); });

}  // namespace
}  // namespace assay::engine
