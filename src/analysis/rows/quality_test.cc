// Figures of an arm's weights, given to the arms that compute alike.
#include "analysis/rows/quality.h"

#include <gtest/gtest.h>

#include "analysis/rows/synthetic_bundle.h"

namespace assay {
namespace {

TEST(ArmQualities, GoWithTheWeightsAndTheTypeOfProducts) {
  SyntheticBundle made(1);
  const std::vector<std::string> arms = {"16 bits", "weights", "same weights", "products too"};
  std::vector<std::string> cells;
  for (const std::string& arm : arms) cells.push_back(made.add({.arm = arm, .repetitions = 2}));
  Bundle bundle = made.build();
  for (size_t i = 1; i < arms.size(); ++i) {
    bundle.evidence[cells[i]].requested.options = {{"quantization", "m-fp8"}};
  }
  bundle.evidence[cells[3]].requested.options["dtype"] = "fp8";
  bundle.evidence[cells[1]].quality.emplace().kl_mean.value = 0.25;
  bundle.evidence[cells[3]].quality.emplace().kl_mean.value = 0.5;
  const std::vector<ArmQuality> found = arm_qualities(*group_rows(bundle, arms));
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].arm, "weights");
  EXPECT_EQ(found[0].beside_model.kl_mean.value, 0.25);
  EXPECT_EQ(found[1].arm, "same weights");
  EXPECT_EQ(found[1].beside_model.kl_mean.value, 0.25);
  EXPECT_EQ(found[2].arm, "products too");
  EXPECT_EQ(found[2].beside_model.kl_mean.value, 0.5);
}

}  // namespace
}  // namespace assay
