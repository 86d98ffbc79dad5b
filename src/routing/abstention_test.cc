// Each reason to abstain: rows for which it is given, and beside them some for which it isn't.
#include <gmock/gmock.h>

#include "routing/routed_bundle.h"

namespace assay {
namespace {

using testing::HasSubstr;

// Arms by name and time; those named "eager..." ask for no compiler. The first is the baseline.
RoutedBundle bundle_of(const std::vector<std::pair<std::string, double>>& arms, double noise) {
  RoutedStudy study;
  for (const auto& [name, ms] : arms) {
    study.arms.push_back({name, !name.starts_with("eager"), [each = ms](int64_t) { return each; }});
  }
  study.noise = noise;
  return RoutedBundle(study);
}

void answer_other_prompts(RoutedBundle& bundle, const std::string& arm) {
  for (Row& row : bundle.made.raw().rows) {
    if (row.arm == arm) row.prompt_id = "other-" + row.prompt_id.str();
  }
}

TEST(Abstention, AheadOfAnotherBaselineIsNoProofAgainstTheSafeArm) {
  const Route route = bundle_of({{"slow", 12}, {"fast", 7}, {"eager", 7.15}}, 0.1).route();
  EXPECT_EQ(rule_at(route, 30).arm, "eager");
  EXPECT_TRUE(rule_at(route, 30).abstains);
  EXPECT_THAT(rule_at(route, 30).because,
              HasSubstr("fast is faster than slow, and not proven faster than eager"));
  const Route beside = bundle_of({{"eager", 12}, {"fast", 7}, {"other", 7.15}}, 0.1).route();
  EXPECT_EQ(beside.choices[1].decision, Decision::Kind::kAhead);
  EXPECT_EQ(rule_at(beside, 30).arm, beside.choices[1].arm);
  EXPECT_FALSE(rule_at(beside, 30).abstains) << "the safe arm is the baseline";
}

TEST(Abstention, AnArmThatNothingCanBeComparedWith) {
  RoutedBundle bundle = bundle_of({{"fast", 7}, {"eager", 10}}, 0.01);
  EXPECT_EQ(rule_at(bundle.route(), 30).arm, "fast");
  answer_other_prompts(bundle, "eager");
  const Route route = bundle.route();
  EXPECT_EQ(rule_at(route, 30).arm, "eager");
  EXPECT_TRUE(rule_at(route, 30).abstains);
  EXPECT_EQ(rule_at(route, 30).because, "no other arm can be compared with it");
}

TEST(Abstention, AnArmThatIsNotComparedWithTheSafeOne) {
  RoutedBundle bundle = bundle_of({{"slow", 12}, {"fast", 7}, {"eager", 10}}, 0.01);
  EXPECT_EQ(rule_at(bundle.route(), 30).arm, "fast");
  answer_other_prompts(bundle, "eager");
  const Route route = bundle.route();
  EXPECT_EQ(rule_at(route, 30).arm, "eager");
  EXPECT_TRUE(rule_at(route, 30).abstains);
  EXPECT_EQ(rule_at(route, 30).because, "fast isn't compared with the safe arm");
}

TEST(Abstention, StrataOfTheSameLengthsWithoutACommonSafeArm) {
  RoutedStudy study = two_routed_arms(0.7);
  study.arms.push_back({"eager-static", false, [](int64_t) { return 12.0; }});
  study.lengths = {10, 11};
  RoutedBundle bundle(study);
  for (Row& row : bundle.made.raw().rows) row.prompt_tokens = 10;
  EXPECT_EQ(rule_at(bundle.route(), 10).arm, "fast");
  bundle.made.lose(bundle.cell("eager", 11), 7, RowStatus::kOom, "");
  const Route route = bundle.route();
  EXPECT_EQ(rule_at(route, 10).arm, "");
  EXPECT_TRUE(rule_at(route, 10).abstains);
  EXPECT_EQ(rule_at(route, 10).because, "no arm is safe on all strata of these lengths");
}

TEST(Abstention, FewWarmRowsBarAnArm) {
  const auto with_warm = [](int64_t count) {
    RoutedBundle bundle(two_routed_arms(0.7));
    for (int64_t i = count; i < 40; ++i) bundle.made.row(bundle.cell("fast", 30), i).cold = true;
    return bundle.route();
  };
  const Route few = with_warm(4);
  EXPECT_EQ(rule_at(few, 30).arm, "eager");
  ASSERT_EQ(few.barred.size(), 1u);
  EXPECT_EQ(few.barred[0].reason, "4 warm ok rows, needs 5");
  EXPECT_TRUE(with_warm(5).barred.empty());
}

TEST(Abstention, AnUnfinishedRunIsSaidInThePolicy) {
  RoutedBundle bundle(two_routed_arms(0.7));
  EXPECT_THAT(bundle.route().policy.not_measured,
              testing::Not(testing::Contains(HasSubstr("unfinished"))));
  bundle.made.raw().complete = false;
  EXPECT_EQ(bundle.route().policy.not_measured.front(),
            "the rest of the study: the run is unfinished, 246 rows were measured");
}

// Prompts and decoding, each with a winner of its own; `decoder` has another cache.
Route two_winners(const std::string& cache_of_decoder) {
  RoutedStudy study;
  study.arms = {{"eager", false}, {"first", true}, {"decoder", true}};
  study.lengths = {10, 80};
  study.phases = {Phase::kPrefill, Phase::kKvDecode};
  RoutedBundle bundle(study);
  for (Row& row : bundle.made.raw().rows) {
    const bool wins = row.arm == (row.phase == Phase::kPrefill ? "first" : "decoder");
    if (wins) *row.latency_ms *= 0.7;
    row.cache = row.arm == "decoder" ? cache_of_decoder : "static";
  }
  return bundle.route();
}

TEST(Handover, OfACacheThatNoRowMeasuredIsSaid) {
  const Route route = two_winners("dynamic");
  EXPECT_EQ(rule_at(route, 10).arm, "first");
  EXPECT_EQ(rule_at(route, 10, 1, Phase::kKvDecode).arm, "decoder");
  EXPECT_THAT(route.policy.not_measured,
              testing::Contains("requests that first prefills and decoder decodes (cache static "
                                "and dynamic): no row says what handing over the cache costs, or "
                                "that it can be done"));
  EXPECT_THAT(two_winners("static").policy.not_measured,
              testing::Not(testing::Contains(HasSubstr("handing over"))));
}

}  // namespace
}  // namespace assay
