// Studies of two sides: their arms, the refusals, and the pairs in their plans.
#include "study/sides.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>

#include "study/arms.h"
#include "study/plan.h"

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const StudySides kSides = {"old/assay", "new/assay"};

StudyArm arm(const std::string& name, const std::string& backend = "native") {
  return {.name = name, .backend = backend, .mode = "eager", .cache = "dynamic", .dynamic = ""};
}

Study study_of(std::vector<StudyArm> arms) {
  Study study;
  study.name = "s";
  study.models = {{.name = "m", .path = "m", .dtype = ""}};
  study.arms = std::move(arms);
  study.phases = {Phase::kPrefill, Phase::kKvDecode};
  study.scenarios = {*builtin_scenario("single_micro")};
  study.token_lengths = {4};
  study.batch = {1};
  study.repetitions = 13;
  study.processes = 3;
  study.warmup = 1;
  study.order = RunOrder::kShuffled;
  study.baseline = study.arms.back().name;
  study.stopping = Stopping{100, 0.01};
  return study;
}

TEST(Sides, EveryArmIsThereUnderBothPrograms) {
  const auto study = two_sided(study_of({arm("a"), arm("b")}), kSides);
  ASSERT_TRUE(study) << study.error().message;
  std::vector<std::string> names;
  std::vector<std::string> programs;
  for (const StudyArm& each : study->arms) {
    names.push_back(each.name);
    programs.push_back(each.options["program"]);
  }
  EXPECT_THAT(names, ElementsAre("a@base", "a@cand", "b@base", "b@cand"));
  EXPECT_THAT(programs, ElementsAre("old/assay", "new/assay", "old/assay", "new/assay"));
  EXPECT_EQ(study->baseline, "b@base");
  EXPECT_FALSE(study->stopping) << "one side would stop before the other";
}

TEST(Sides, TorchArmsTakeInterpreters) {
  const auto study = two_sided(study_of({arm("t", "torch")}), kSides);
  ASSERT_TRUE(study) << study.error().message;
  EXPECT_EQ(study->arms[0].options["python"], "old/assay");
  EXPECT_EQ(study->arms[1].options["python"], "new/assay");
}

TEST(Sides, WhatCantHaveTwoProgramsIsRefused) {
  const auto refusal = [](std::vector<StudyArm> arms) {
    const auto study = two_sided(study_of(std::move(arms)), kSides);
    return study ? std::string("accepted") : study.error().message;
  };
  EXPECT_THAT(refusal({arm("n"), arm("t", "torch")}),
              HasSubstr("arm \"t\": expected backend native"));
  StudyArm own = arm("own");
  own.options["program"] = "mine";
  EXPECT_THAT(refusal({own}), HasSubstr("expected no key \"program\""));
  EXPECT_THAT(refusal({arm("a@base")}), HasSubstr("doesn't end in @base or @cand"));
  std::vector<StudyArm> many;
  for (size_t i = 0; i <= kMaxArms / 2; ++i) many.push_back(arm(fmt::format("a{}", i)));
  EXPECT_THAT(refusal(std::move(many)), HasSubstr("expected at most 32 arms"));
  Study long_study = study_of({arm("a")});
  long_study.repetitions = kMaxPlanRows / 3;
  const auto too_long = two_sided(long_study, kSides);
  ASSERT_FALSE(too_long);
  EXPECT_THAT(too_long.error().message, HasSubstr("2000000 rows on two sides"));
}

// Each repetition of a side is next to the same one of the other side, and their order is balanced
// within two blocks, in any order of the other arms.
TEST(Sides, RepetitionsArePairsThatSwapTheirOrder) {
  const auto study = two_sided(study_of({arm("a"), arm("b"), arm("c")}), kSides);
  ASSERT_TRUE(study);
  const Plan plan = make_plan(*study);
  ASSERT_EQ(plan.units.size() % 2, 0u);
  struct Started {
    int64_t round = -1;
    int64_t blocks = 0;
    bool cand_first = false;
  };
  std::map<size_t, Started> of_pair;  // by the base's cell
  int64_t base_first = 0;
  for (size_t i = 0; i < plan.units.size(); i += 2) {
    const Unit& first = plan.units[i];
    const Unit& second = plan.units[i + 1];
    EXPECT_EQ(first.repetitions, 1);
    EXPECT_EQ(first.first_repetition, second.first_repetition);
    EXPECT_EQ(first.block, second.block);
    EXPECT_EQ(first.round, second.round);
    const size_t base = std::min(first.cell, second.cell);
    ASSERT_EQ(base + 1, std::max(first.cell, second.cell));
    EXPECT_EQ(plan.cells[base].arm % 2, 0u);
    const bool cand_first = first.cell != base;
    base_first += cand_first ? 0 : 1;
    Started& pair = of_pair[base];
    if (pair.round != first.round) pair = {first.round, 0, false};
    if (pair.blocks++ % 2 == 1) {
      EXPECT_NE(cand_first, pair.cand_first);
    }
    pair.cand_first = cand_first;
  }
  const auto pairs = static_cast<int64_t>(plan.units.size() / 2);
  EXPECT_GT(base_first, pairs / 4);
  EXPECT_LT(base_first, 3 * pairs / 4);
}

TEST(Sides, ThePlanKnowsItsPrograms) {
  const auto one = two_sided(study_of({arm("a")}), kSides);
  const auto other = two_sided(study_of({arm("a")}), {"old/assay", "newer/assay"});
  ASSERT_TRUE(one && other);
  const Json plan = plan_to_json(*one, make_plan(*one));
  EXPECT_EQ(plan["study"]["sides"]["cand"], "new/assay");
  EXPECT_NE(plan, plan_to_json(*other, make_plan(*other)));
}

}  // namespace
}  // namespace assay
