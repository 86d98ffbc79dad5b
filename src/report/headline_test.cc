// The sentence that an index has of a result.
#include "report/headline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/analyze.h"
#include "analysis/rows/synthetic_bundle.h"
#include "report/small_bundle.h"

namespace assay {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;
using testing::StartsWith;

// Eager, and another arm at that share of its time, on a stratum for each share.
std::string of_shares(const std::vector<double>& shares, double noise = 0.01) {
  SyntheticBundle bundle(31);
  for (size_t i = 0; i < shares.size(); ++i) {
    SyntheticCell cell{.arm = "eager",
                       .scenario = fmt::format("s{}", i),
                       .prompt_tokens = static_cast<int64_t>(10 * (i + 1)),
                       .noise = noise};
    bundle.add(cell);
    cell.arm = "other";
    cell.mean_ms *= shares[i];
    bundle.add(cell);
  }
  AnalysisOptions options;
  options.resamples = 500;
  return headline(*analyze(bundle.build(), options, nullptr));
}

TEST(Headline, NamesTheArmThatMostStrataHave) {
  EXPECT_THAT(
      of_shares({0.5}),
      MatchesRegex("prefill: other is the fastest arm, at 0\\.[45][0-9]* \\[0\\..*, 0\\..*\\] "
                   "of eager's time\\."));
  EXPECT_THAT(of_shares({0.5, 0.6, 1.3}),
              StartsWith("prefill: other is the fastest arm in 2 of 3 strata, at 0."));
  EXPECT_EQ(of_shares({1.5, 1.5, 0.5}), "prefill: eager is the fastest arm in 2 of 3 strata.");
}

TEST(Headline, SaysWhereNothingIsDecided) {
  EXPECT_EQ(of_shares({1.0}), "prefill: eager and arms equivalent to it are the fastest.");
  EXPECT_THAT(of_shares({0.99}, 0.4),
              StartsWith("prefill: it is undecided which arm is the fastest ("));
}

TEST(Headline, OfAnswersOfAsManyStrataTheOneThatDecidesMostCounts) {
  EXPECT_THAT(of_shares({1.0, 0.5}), StartsWith("prefill: other is the fastest arm in 1 of 2"))
      << "the first stratum is of equivalent arms";
  EXPECT_THAT(of_shares({1.5, 0.5}), EndsWith("in 1 of 2 strata, and other in as many."));
}

TEST(Headline, CountsLostRows) {
  const std::string said = headline(small_findings());
  EXPECT_THAT(said, HasSubstr("kv_decode: compiled is"));
  EXPECT_THAT(said, EndsWith("; 5 of 512 rows are lost."));
  EXPECT_THAT(of_shares({0.5}), Not(HasSubstr("lost")));
}

TEST(Headline, OfNoRows) {
  Bundle bundle;
  bundle.manifest = bundle.environment = Json::object();
  EXPECT_EQ(headline(*analyze(bundle, {}, nullptr)), "there are no rows to choose by.");
}

}  // namespace
}  // namespace assay
