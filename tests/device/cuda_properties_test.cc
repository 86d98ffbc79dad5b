// Runs the promises of sessions on every device on a GPU, in fp32. Skipped where there is none.
#include "cuda_driver.h"
#include "engine/session/session_properties.h"

namespace assay::engine {
namespace {

using test::SessionProperties;

struct PropertyCase {
  size_t family, property;
};
std::vector<PropertyCase> property_cases() {
  std::vector<PropertyCase> cases;
  for (size_t family = 0; family < families().size(); ++family) {
    for (size_t i = 0; i < SessionProperties::all().size(); ++i) cases.push_back({family, i});
  }
  return cases;
}
std::string name_of(const PropertyCase& of) {
  return families()[of.family].name + "_" + SessionProperties::all()[of.property].name;
}
// The processor runs one family; the cases about when a graph is compiled run in the soak alone,
// since session_test has them for every family.
std::vector<PropertyCase> chosen_cases() {
  std::vector<std::string> few, more;
  for (const char* property :
       {"BothCachesGiveTheSame", "RowsOfABatchEqualSingleRuns", "SteppingEqualsALongerPrompt",
        "AllLogitsAreThoseOfEveryPrefix", "RunsAreRepeatableAndSurviveAMove",
        "GreedyIsDecodeOfItsOwnTokens", "GreedyStopsWhereItIsTold", "OneModelServesTwoSessions",
        "LogitsThatAreNotFiniteAreSeen", "ErrorsLeaveItUsable", "SymbolicLengthsInAnyOrder"}) {
    few.push_back(fmt::format("llama_{}", property));
  }
  for (const char* property :
       {"CountersOfScriptedLengths", "TheRecompileLimitEndsCompilation", "BucketsShareAGraph",
        "SplitArmsCompileOnePhase", "MakeReadyLeavesNothing"}) {
    more.push_back(fmt::format("llama_{}", property));
  }
  for (const char* family : {"gpt2", "qwen2"}) {
    for (const char* property : {"BothCachesGiveTheSame", "RowsOfABatchEqualSingleRuns"}) {
      more.push_back(fmt::format("{}_{}", family, property));
    }
  }
  return assay::test::chosen(property_cases(), &name_of, few, more);
}

class CudaProperties : public testing::TestWithParam<PropertyCase> {
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

INSTANTIATE_TEST_SUITE_P(All, CudaProperties, testing::ValuesIn(chosen_cases()),
                         [](const auto& test) { return name_of(test.param); });

}  // namespace
}  // namespace assay::engine
