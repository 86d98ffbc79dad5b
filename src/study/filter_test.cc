// The part of a study that --only leaves.
#include "study/filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

using ::testing::HasSubstr;

Study three_by_three() {
  Study study;
  for (const char* name : {"a", "b", "c"}) {
    StudyModel model;
    model.name = name;
    study.models.push_back(model);
    StudyArm arm;
    arm.name = std::string("arm-") + name;
    study.arms.push_back(arm);
  }
  study.phases = {Phase::kPrefill, Phase::kKvDecode};
  study.scenarios = {{"short", {3}, ""}, {"long", {9}, ""}};
  study.baseline = "arm-a";
  return study;
}

Status filtered(Study& study, const std::vector<std::string>& filters) {
  return keep_only(study, filters);
}

TEST(KeepOnly, LeavesWhatIsNamed) {
  Study study = three_by_three();
  ASSERT_TRUE(filtered(study, {"model=c,a", "phase=prefill", "scenario=long"}));
  ASSERT_EQ(study.models.size(), 2u);
  EXPECT_EQ(study.models[0].name, "a") << "in the order of the study";
  EXPECT_EQ(study.phases, std::vector{Phase::kPrefill});
  EXPECT_EQ(study.scenarios.front().name, "long");
  EXPECT_EQ(study.arms.size(), 3u);
  EXPECT_EQ(study.baseline, "arm-a");
}

TEST(KeepOnly, ABaselineThatGoesGivesWay) {
  Study study = three_by_three();
  ASSERT_TRUE(filtered(study, {"arm=arm-b,arm-c"}));
  EXPECT_EQ(study.baseline, "arm-b");
}

TEST(KeepOnly, LeavesSomethingToMeasure) {
  Study study = three_by_three();
  study.scenarios[0].phases = {Phase::kPrefill};
  EXPECT_THAT(filtered(study, {"phase=kv_decode", "scenario=short"}).error().message,
              HasSubstr("expected a scenario of the phases that are left"));
}

TEST(KeepOnly, RefusesWhatItDoesntKnow) {
  Study study = three_by_three();
  EXPECT_THAT(filtered(study, {"modle=a"}).error().message, HasSubstr("did you mean \"model\""));
  EXPECT_THAT(filtered(study, {"a"}).error().message, HasSubstr("expected AXIS=NAME"));
  EXPECT_THAT(filtered(study, {"arm=arm-x"}).error().message, HasSubstr("found \"arm-x\""));
  EXPECT_THAT(filtered(study, {"model="}).error().message, HasSubstr("found \"\""));
  EXPECT_THAT(filtered(study, {"arm=arm-a", "arm=arm-b"}).error().message, HasSubstr("arm again"));
}

}  // namespace
}  // namespace assay
