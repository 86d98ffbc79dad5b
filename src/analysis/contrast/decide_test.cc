// An arm that beats the baseline is worth taking although the fastest of the arms stays open.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/analyze.h"
#include "analysis/rows/synthetic_bundle.h"

namespace assay {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

Decision only_decision(SyntheticBundle& bundle) {
  bundle.raw().manifest["study"]["arms"] = {"eager", "static", "any"};
  AnalysisOptions options;
  options.resamples = 500;
  const Findings findings = *analyze(bundle.build(), options, nullptr);
  EXPECT_EQ(findings.decisions.size(), 1u);
  return findings.decisions.at(0);
}

TEST(Decide, TwoArmsThatBeatTheBaselineAreAheadThoughTheFasterOneIsOpen) {
  SyntheticBundle bundle(37);
  bundle.add({.arm = "eager", .mean_ms = 30});
  bundle.add_compiled({.arm = "static", .noise = 0.1}, "false");
  bundle.add_compiled({.arm = "any", .noise = 0.1}, "true");
  const Decision decision = only_decision(bundle);
  EXPECT_EQ(decision.kind, Decision::Kind::kAhead);
  ASSERT_EQ(decision.tied.size(), 1u);
  EXPECT_THAT(decision.ahead, UnorderedElementsAre("static", "any"));
  EXPECT_EQ(decision.ahead[0], decision.arm);
}

TEST(Decide, AnOpenArmThatIsNotShownToBeatTheBaselineIsNotAhead) {
  SyntheticBundle bundle(38);
  bundle.add({.arm = "eager", .mean_ms = 10, .noise = 0.01});
  bundle.add_compiled({.arm = "static", .mean_ms = 8, .noise = 0.01}, "false");
  bundle.add_compiled({.arm = "any", .mean_ms = 8.2, .noise = 0.6}, "true");
  const Decision decision = only_decision(bundle);
  EXPECT_EQ(decision.kind, Decision::Kind::kAhead);
  EXPECT_EQ(decision.arm, "static");
  EXPECT_THAT(decision.ahead, ElementsAre("static"));
}

TEST(Decide, NoArmIsAheadWhereTheBaselineIsOneOfTheOpenOnes) {
  SyntheticBundle bundle(39);
  bundle.add({.arm = "eager", .mean_ms = 10, .noise = 0.3});
  bundle.add_compiled({.arm = "static", .mean_ms = 9.9, .noise = 0.3}, "false");
  bundle.add_compiled({.arm = "any", .mean_ms = 30, .noise = 0.1}, "true");
  const Decision decision = only_decision(bundle);
  EXPECT_EQ(decision.kind, Decision::Kind::kUndecided);
  EXPECT_THAT(decision.ahead, IsEmpty());
}

}  // namespace
}  // namespace assay
