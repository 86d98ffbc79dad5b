// The cost of an answer goes into parity.json and comes back, and a missing one is absent.
#include "artifact/parity_cost.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(ParityCostFile, ComesBackAsItWasWritten) {
  for (const ParityCost& cost : {ParityCost{2.5, 1.25, true}, ParityCost{0.5, std::nullopt}}) {
    const Json parity = {{"passed", true}, {kParityCost, parity_cost_to_json(cost)}};
    EXPECT_EQ(parity_cost_of(parity), cost);
  }
}

TEST(ParityCostFile, OfARecordWithoutOneIsAbsent) {
  EXPECT_FALSE(parity_cost_of(Json{{"passed", true}}));
  EXPECT_FALSE(parity_cost_of(Json{{"passed", true}, {kParityCost, {{"seconds", "long"}}}}));
}

}  // namespace
}  // namespace assay
