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

TEST(CompareParity, AnArmThatIsNotAskedHasNoVerdict) {
  const Json result =
      unasked_parity("arm", "base", {FailureKind::kError, "not_asked", "it was lost"});
  EXPECT_TRUE(result["passed"].is_null());
  EXPECT_EQ(result["baseline_arm"], "base");
  EXPECT_EQ(result["error"],
            (Json{{"arm", "arm"}, {"class", "not_asked"}, {"message", "it was lost"}}));
}

// A baseline whose second choice was ahead of 6 by nothing and of 9 by `margin`, in a type that
// rounds to `eps`.
ParityAnswer close_call(double eps, double margin) {
  const Json steps = {{"others", {{7, 9}, {6, 9}, {7, 9}}},
                      {"margins", {{1, 1}, {0, margin}, {1, 1}}},
                      {"logit", {4, 4, 4}}};
  return ParityTokens{{{1, 2, 3}}, {Json{{"eps", eps}, {"steps", steps}}}};
}

TEST(CompareParity, ATieWithinTheTypesRoundingEndsTheSequence) {
  constexpr double kFp16 = 0.000977;
  const ParityAnswer other = ParityTokens{{{1, 9, 8}}, {}};
  const Json tie = compare_parity("arm", other, "base", close_call(kFp16, 0.05));
  EXPECT_EQ(tie["passed"], true);
  EXPECT_EQ(tie["compared_tokens"], 2);
  EXPECT_EQ(tie["ties"][0]["position"], 1);
  EXPECT_TRUE(tie["first_difference"].is_null());
  EXPECT_EQ(compare_parity("arm", other, "base", close_call(kFp16, 0.07))["passed"], false)
      << "too far ahead";
  EXPECT_EQ(compare_parity("arm", other, "base", close_call(1.19e-7, 1e-9))["passed"], false)
      << "fp32 is held to the token";
  const ParityAnswer third = ParityTokens{{{1, 8, 8}}, {}};
  EXPECT_EQ(compare_parity("arm", third, "base", close_call(kFp16, 0.05))["passed"], false)
      << "not among those next to it";
  const ParityAnswer first_of_next = ParityTokens{{{1, 6, 8}}, {}};
  EXPECT_EQ(compare_parity("arm", first_of_next, "base", close_call(kFp16, 0.05))["passed"], true);
  const ParityAnswer shorter = ParityTokens{{{1}}, {}};
  EXPECT_EQ(compare_parity("arm", shorter, "base", close_call(kFp16, 0.05))["passed"], false);
}

TEST(CompareParity, AWorkersOddWordsAboutAChoiceMakeNoTie) {
  const ParityAnswer other = ParityTokens{{{1, 9, 8}}, {}};
  const auto passes = [&](const Json& steps) {
    const ParityAnswer baseline =
        ParityTokens{{{1, 2, 3}}, {Json{{"eps", 0.001}, {"steps", steps}}}};
    return compare_parity("arm", other, "base", baseline)["passed"].get<bool>();
  };
  const Json good =
      Json::parse(R"({"others": [[], [9]], "margins": [[], [0.001]], "logit": [4, 4]})");
  EXPECT_TRUE(passes(good));
  for (const char* key : {"others", "margins", "logit"}) {
    for (const char* odd : {"null", "9", "{}", "[]", "[4]", "[[], []]", "[[], [\"9\"]]",
                            "[[], [null]]", "[[], {\"9\": 9}]"}) {
      Json steps = good;
      steps[key] = Json::parse(odd);
      EXPECT_FALSE(passes(steps)) << key << " " << odd;
    }
    Json without = good;
    without.erase(key);
    EXPECT_FALSE(passes(without)) << key;
  }
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
