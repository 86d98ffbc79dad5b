// Counting and picking out agree with plain loops, with every instruction set.
#include "stats/samples/select.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/random.h"

namespace assay::stats {
namespace {

TEST(Select, KeepsAndCountsWhatAPlainLoopDoes) {
  constexpr double kEnd = std::numeric_limits<double>::infinity();
  Random random(4);
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    for (const size_t n : {0, 1, 7, 8, 65, 1000}) {
      std::vector<double> values(n);
      for (double& x : values) x = std::floor(random.uniform() * 40);
      for (const auto& [low, high] : {std::pair{10.0, 20.0}, {-kEnd, 3.0}, {37.0, kEnd}}) {
        std::vector<double> expected;
        std::ranges::copy_if(values, std::back_inserter(expected),
                             [&](double x) { return x >= low && x <= high; });
        std::vector<double> kept(n + kKeepSlack);
        const KeptCounts counts = keep_between(values, low, high, kept.data());
        kept.resize(counts.kept);
        EXPECT_EQ(kept, expected) << hwy::TargetName(target);
        EXPECT_EQ(counts.below, static_cast<size_t>(std::ranges::count_if(
                                    values, [&](double x) { return x < low; })));
        size_t halves = 0;
        for (const double x : values) halves += x < 20 ? 2 : x == 20 ? 1 : 0;
        EXPECT_EQ(count_below_in_halves(values, 20), halves);
      }
    }
  }
  hwy::SetSupportedTargetsForTest(0);
}

}  // namespace
}  // namespace assay::stats
