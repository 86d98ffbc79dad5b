// criterion's folders: samples, estimates and names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "import/import_fixture.h"

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kCriterionSample =
    R"({"sampling_mode":"Linear","iters":[10.0,20.0],"times":[5e6,8e6]})";
constexpr const char* kCriterionMean =
    R"({"mean":{"confidence_interval":{"confidence_level":0.95,"lower_bound":1,"upper_bound":9},)"
    R"("point_estimate":2e6,"standard_error":1},"median":{},"median_abs_dev":{},"slope":null,"std_dev":{}})";

struct CriterionFile {
  const char* path;
  std::string text;
};

Result<ImportedRows> criterion_rows(const std::vector<CriterionFile>& files) {
  std::vector<SourceText> sources;
  for (const CriterionFile& file : files) sources.push_back(*parse_source(file.text, file.path));
  const auto imported = import_sources(sources, std::nullopt, nullptr);
  if (!imported) return std::unexpected(imported.error());
  return make_rows(*imported, FirstSamples::kByFile);
}

std::string criterion_refusal(const std::vector<CriterionFile>& files) {
  const auto made = criterion_rows(files);
  return made ? "read" : made.error().message;
}

std::string criterion_benchmark(const std::string& function, const std::string& value) {
  return fmt::format(
      R"({{"group_id":"sums","function_id":{},"value_str":{},"throughput":null,"full_id":"sums",)"
      R"("directory_name":"sums","title":"sums"}})",
      function, value);
}

TEST(Criterion, ASampleIsTheMeanOfItsIterationsAndFunctionsOfAGroupAreArms) {
  const auto made =
      criterion_rows({{"a/new/sample.json", kCriterionSample},
                      {"a/new/benchmark.json", criterion_benchmark(R"("fold")", R"("100")")},
                      {"b/new/sample.json", kCriterionSample},
                      {"b/new/benchmark.json", criterion_benchmark(R"("loop")", R"("100")")}});
  ASSERT_TRUE(made) << made.error().message;
  ASSERT_EQ(made->rows.size(), 4U);
  EXPECT_DOUBLE_EQ(*made->rows[0].latency_ms, 0.5);
  EXPECT_DOUBLE_EQ(*made->rows[1].latency_ms, 0.4);
  EXPECT_THAT(made->arms, ElementsAre("fold", "loop"));
  EXPECT_EQ(made->rows[0].scenario, "sums 100");
  EXPECT_EQ(made->rows[3].scenario, "sums 100");
  EXPECT_EQ(made->cold, 0) << "criterion warms up";
  EXPECT_EQ(made->means, 0);
}

TEST(Criterion, ABenchmarkAloneIsAnArmByItsPathOrItsName) {
  const auto named = criterion_rows({{"x/sample.json", kCriterionSample},
                                     {"x/benchmark.json", criterion_benchmark("null", "null")}});
  ASSERT_TRUE(named) << named.error().message;
  EXPECT_THAT(named->arms, ElementsAre("sums"));
  const auto by_path =
      criterion_rows({{"target/criterion/sums/fold/new/sample.json", kCriterionSample}});
  ASSERT_TRUE(by_path) << by_path.error().message;
  EXPECT_THAT(by_path->arms, ElementsAre("sums/fold"));
  EXPECT_EQ(criterion_refusal({{"new/sample.json", kCriterionSample}}),
            "new/sample.json: expected benchmark.json of its folder too, or a path "
            ".../criterion/NAME/new/FILE, found neither");
}

TEST(Criterion, EstimatesWithoutSamplesAreAMean) {
  const auto made = criterion_rows({{"criterion/x/new/estimates.json", kCriterionMean}});
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->means, 1);
  EXPECT_DOUBLE_EQ(*made->rows[0].latency_ms, 2);
  const auto both = criterion_rows({{"criterion/x/new/estimates.json", kCriterionMean},
                                    {"criterion/x/new/sample.json", kCriterionSample}});
  ASSERT_TRUE(both) << both.error().message;
  EXPECT_EQ(both->rows.size(), 2U) << "the samples are what the mean is of";
}

TEST(Criterion, AWordInAFunctionsNameIsNoClaimOfACompiler) {
  const auto made = criterion_rows({{"criterion/compile/new/sample.json", kCriterionSample}});
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->cells[0].compile_mode, "");
  EXPECT_FALSE(made->cells[0].named_compiled);
}

TEST(Criterion, ForeignFoldersAreOneLine) {
  const std::string short_list = R"({"sampling_mode":"Flat","iters":[1.0],"times":[1.0,2.0]})";
  EXPECT_THAT(criterion_refusal({{"criterion/x/new/sample.json", short_list}}),
              HasSubstr("expected 2 entries at \"iters\" as at \"times\", found 1"));
  EXPECT_THAT(criterion_refusal({{"x/new/benchmark.json", criterion_benchmark("null", "null")}}),
              HasSubstr("expected sample.json or estimates.json of its folder too, found none"));
  EXPECT_THAT(criterion_refusal({{"criterion/x/a.json", kCriterionSample},
                                 {"criterion/x/b.json", kCriterionSample}}),
              HasSubstr("expected one such file a folder, found a second"));
}

}  // namespace
}  // namespace assay
