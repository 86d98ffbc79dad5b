// Comparisons of other tools' files: what they may differ in, and what they can show.
#include "analysis/compare/other_tools.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

using testing::HasSubstr;

Bundle imported_bundle(int64_t means, size_t rows) {
  Bundle bundle;
  bundle.environment = {{"imported", {{"format", "x"}, {"means", means}}}};
  bundle.rows.resize(rows);
  return bundle;
}

TEST(OtherTools, RowsOfOneProcessJudgeAndMeansDont) {
  const auto options_of = [](const Bundle& base, const Bundle& cand) {
    const CompareOptions options = options_for_other_tools({&base, 1}, {&cand, 1}, {});
    return std::pair(options.allow_single_process, options.minimum_rows);
  };
  EXPECT_EQ(options_of(imported_bundle(0, 5), imported_bundle(0, 5)), std::pair(true, int64_t{5}));
  EXPECT_EQ(options_of(imported_bundle(0, 5), imported_bundle(2, 2)), std::pair(false, int64_t{1}));
  EXPECT_EQ(options_of(imported_bundle(1, 5), imported_bundle(0, 5)), std::pair(true, int64_t{5}))
      << "some means among samples";
  EXPECT_TRUE(is_imported(imported_bundle(0, 0)));
  EXPECT_FALSE(is_imported(Bundle()));
}

TEST(OtherTools, ASettingThatAnotherBuildDoesntKnowIsNoDifferenceOfTheCommand) {
  const AxisDifference build{"framework_build", "", "1", "2"};
  const AxisDifference unknown_build{"framework_build", "", "", "2"};
  const AxisDifference fresh{"setting.knob", "", "", "1"};
  const AxisDifference changed{"setting.knob", "", "0", "1"};
  EXPECT_TRUE(is_of_newer_build(fresh, {build, fresh}));
  EXPECT_FALSE(is_of_newer_build(changed, {build, changed}));
  EXPECT_FALSE(is_of_newer_build(fresh, {fresh})) << "of one build, it is the command's";
  EXPECT_FALSE(is_of_newer_build(fresh, {unknown_build, fresh}));
  EXPECT_FALSE(is_of_newer_build({"device", "", "", "x"}, {build}));
}

TEST(OtherTools, TheCaveatSaysWhatTheRatioContains) {
  Comparison comparison;
  ComparedCell& cell = comparison.cells.emplace_back();
  EXPECT_THAT(caveat_of_other_tools(comparison), HasSubstr("means without their samples"));
  cell.verdict = Verdict::kSlower;
  EXPECT_THAT(caveat_of_other_tools(comparison), testing::StartsWith("One process a side, one"));
  cell.by_processes = true;
  EXPECT_THAT(caveat_of_other_tools(comparison), testing::StartsWith("Measured one after the"));
}

}  // namespace
}  // namespace assay
