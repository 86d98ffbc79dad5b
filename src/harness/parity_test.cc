// Parity's record: what differs first, and what can't be said.
#include "harness/parity.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

const ParityAnswer kBaseline = ParityTokens{{{1, 2, 3}, {4, 5, 6}}, {}};

TEST(CompareParity, CountsWhatAgrees) {
  const Json result = compare_parity("arm", kBaseline, "base", kBaseline);
  EXPECT_EQ(result["passed"], true);
  EXPECT_EQ(result["compared_tokens"], 6);
  EXPECT_TRUE(result["first_difference"].is_null());
}

TEST(CompareParity, NamesTheFirstDifference) {
  const Json result =
      compare_parity("arm", ParityTokens{{{1, 2, 3}, {4, 9, 9}}, {}}, "base", kBaseline);
  EXPECT_EQ(result["passed"], false);
  EXPECT_EQ(result["compared_tokens"], 5);
  EXPECT_EQ(result["first_difference"],
            (Json{{"sequence", 1}, {"position", 1}, {"expected", 5}, {"found", 9}}));
}

TEST(CompareParity, AShorterAnswerDiffersWhereItEnds) {
  const Json result =
      compare_parity("arm", ParityTokens{{{1, 2}, {4, 5, 6}}, {}}, "base", kBaseline);
  EXPECT_EQ(result["passed"], false);
  EXPECT_EQ(result["first_difference"],
            (Json{{"sequence", 0}, {"position", 2}, {"expected", 3}, {"found", nullptr}}));
  EXPECT_EQ(compare_parity("arm", ParityTokens{}, "base", kBaseline)["passed"], false);
}

TEST(CompareParity, NoAnswerFailsAndNoBaselineSaysNothing) {
  const ParityAnswer none =
      std::unexpected(WorkerFailure{FailureKind::kCrash, "SIGSEGV", "it died"});
  const Json failed = compare_parity("arm", none, "base", kBaseline);
  EXPECT_EQ(failed["passed"], false);
  EXPECT_EQ(failed["error"]["arm"], "arm");
  EXPECT_EQ(failed["error"]["class"], "SIGSEGV");
  const Json unsaid = compare_parity("arm", kBaseline, "base", none);
  EXPECT_TRUE(unsaid["passed"].is_null());
  EXPECT_EQ(unsaid["error"]["arm"], "base");
}

TEST(CompareParity, KeepsTheLogitStatisticsThatWorkersReport) {
  EXPECT_FALSE(compare_parity("arm", kBaseline, "base", kBaseline).contains("logit_stats"));
  const ParityAnswer with{
      ParityTokens{{{1, 2, 3}, {4, 5, 6}}, {Json{{"mean", 0.5}}, Json{{"mean", 2}}}}};
  const Json result = compare_parity("arm", with, "base", kBaseline);
  EXPECT_EQ(result["logit_stats"], (Json{{"arm", {{{"mean", 0.5}}, {{"mean", 2}}}}}));
  EXPECT_EQ(compare_parity("arm", with, "base", with)["logit_stats"]["base"][1]["mean"], 2);
}

}  // namespace
}  // namespace assay
