// Design effects by hand, and intervals by effective numbers.
#include "stats/estimates/clustered_share.h"

#include <gtest/gtest.h>

#include <vector>

namespace assay::stats {
namespace {

TEST(ClusteredShare, OneObservationAClusterWhereClustersShareTheirFate) {
  // 5 / 4 (24^2 + 4 * 6^2) / (150 * 0.2 * 0.8) = 37.5, more than 150 / 5.
  const std::vector<ClusterCount> whole = {{30, 30}, {0, 30}, {0, 30}, {0, 30}, {0, 30}};
  EXPECT_DOUBLE_EQ(design_effect(whole).value(), 30);
  const std::vector<ClusterCount> spread(5, {6, 30});
  EXPECT_DOUBLE_EQ(design_effect(spread).value(), 1);
  const std::vector<ClusterCount> between = {{12, 30}, {6, 30}, {6, 30}, {6, 30}, {0, 30}};
  EXPECT_DOUBLE_EQ(design_effect(between).value(), 1.25 * 72 / 24);
}

TEST(ClusteredShare, NothingShowsTheEffectOfOneClusterOrOfNoDifference) {
  EXPECT_FALSE(design_effect({}));
  EXPECT_FALSE(design_effect(std::vector<ClusterCount>{{3, 30}}));
  EXPECT_FALSE(design_effect(std::vector<ClusterCount>{{3, 30}, {0, 0}}));
  EXPECT_FALSE(design_effect(std::vector<ClusterCount>{{0, 30}, {0, 30}}));
  EXPECT_FALSE(design_effect(std::vector<ClusterCount>{{30, 30}, {30, 30}}));
}

TEST(ClusteredShare, TheIntervalIsWilsonsOfTheEffectiveNumbers) {
  EXPECT_EQ(clustered_wilson_interval(30, 150, 1), wilson_interval(30, 150));
  const auto wide = clustered_wilson_interval(30, 150, 30);
  const auto of_processes = wilson_interval(1, 5);
  EXPECT_DOUBLE_EQ(wide->low, of_processes->low);
  EXPECT_DOUBLE_EQ(wide->high, of_processes->high);
  EXPECT_EQ(clustered_wilson_interval(0, 150, 30)->low, 0);
  EXPECT_EQ(clustered_wilson_interval(150, 150, 30)->high, 1);
  EXPECT_FALSE(clustered_wilson_interval(0, 0, 1));
}

}  // namespace
}  // namespace assay::stats
