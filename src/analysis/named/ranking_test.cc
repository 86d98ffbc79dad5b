// Rankings of arms that hinge on a few rows, where processes are the unit and where rows are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/analyze.h"
#include "analysis/of_kind.h"
#include "analysis/rows/synthetic_bundle.h"

namespace assay {
namespace {

using testing::HasSubstr;

// Five processes an arm, static 5 % faster but for slow rows.
struct OfProcesses {
  explicit OfProcesses(const std::vector<int>& slow) : bundle(99) {
    SyntheticCell cell{.arm = "eager", .noise = 0.01};
    cell.processes = 5;
    bundle.add(cell);
    cell.arm = "static";
    cell.mean_ms = 9.5;
    compiled = bundle.add(cell);
    for (const int row : slow) *bundle.row(compiled, row).latency_ms *= 3;
  }
  std::vector<Finding> of_kind(const std::string& kind) {
    return assay::of_kind(bundle, kind, 500);
  }
  SyntheticBundle bundle;
  std::string compiled;
};

TEST(Ranking, SlowRowsOfEveryProcessMakeMeanAndMedianDisagree) {
  OfProcesses everywhere({1, 7, 13, 19, 25});
  const auto found = everywhere.of_kind("mean_median_disagreement");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(found[0].text, HasSubstr("slower than eager by the mean"));
  EXPECT_THAT(everywhere.of_kind("ranking_sensitive").at(0).text,
              HasSubstr("without the five largest"));
}

// One slow process of five leaves it open which mean is lower.
TEST(Ranking, SlowRowsOfOneProcessAreOneObservation) {
  OfProcesses one({6, 7, 8, 9, 10, 11});
  EXPECT_THAT(one.of_kind("mean_median_disagreement"), testing::IsEmpty());
}

// Bundles of one arm twice on five strata, of which one is said to be ranked one way and another.
struct Ranked {
  int disagree = 0;
  int sensitive = 0;
};
Ranked rank_equal_arms(int trials, double spikes, double process_shift) {
  Ranked ranked;
  for (int trial = 0; trial < trials; ++trial) {
    SyntheticBundle bundle(static_cast<uint64_t>(trial) + 4000);
    for (int stratum = 0; stratum < 5; ++stratum) {
      for (const char* arm : {"eager", "static"}) {
        SyntheticCell cell{.arm = arm,
                           .scenario = fmt::format("s{}", stratum),
                           .noise = 0.1,
                           .spike_rate = spikes};
        cell.processes = process_shift > 0 ? 5 : 0;
        cell.process_shift = process_shift;
        bundle.add(cell);
      }
    }
    AnalysisOptions options;
    options.resamples = 200;
    const Findings findings = *analyze(bundle.build(), options, nullptr);
    const auto any = [&](const char* kind) {
      return std::ranges::find(findings.named, kind, &Finding::kind) != findings.named.end();
    };
    ranked.disagree += any("mean_median_disagreement");
    ranked.sensitive += any("ranking_sensitive");
  }
  return ranked;
}

TEST(Ranking, EqualArmsAreSeldomRankedBothWays) {
  constexpr int kTrials = 200;
  for (const double process_shift : {0.0, 0.2}) {
    for (const double spikes : {0.0, 0.05}) {
      const Ranked ranked = rank_equal_arms(kTrials, spikes, process_shift);
      const std::string world = fmt::format("{}_{}", spikes, process_shift);
      RecordProperty("disagree_" + world, ranked.disagree);
      RecordProperty("sensitive_" + world, ranked.sensitive);
      EXPECT_LE(ranked.disagree, kTrials * 0.05) << world;
      EXPECT_LE(ranked.sensitive, kTrials * 0.05) << world;
    }
  }
}

}  // namespace
}  // namespace assay
