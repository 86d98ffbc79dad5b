// Settings of two imports: differing ones are named, and no others.
#include "analysis/compare/setting_axes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/compare/two_arms.h"

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> shown(const std::vector<AxisDifference>& differences) {
  std::vector<std::string> texts;
  for (const AxisDifference& d : differences) {
    texts.push_back(fmt::format("{}|{}|{}|{}", d.axis, d.about, d.base, d.cand));
  }
  return texts;
}

Json two_arms() {
  return {{"settings", {{"n_threads", "2"}}},
          {"arms", {{"a", {{"settings", {{"fa", "0"}}}}}, {"b", {{"settings", {{"fa", "1"}}}}}}},
          {"models", {{"m", {{"n_params", "10"}}}}}};
}

TEST(SettingAxes, WhatIsLikeHasNoDifference) {
  EXPECT_THAT(setting_differences(two_arms(), two_arms()), IsEmpty());
  EXPECT_THAT(setting_differences(Json(), Json()), IsEmpty());
  EXPECT_THAT(setting_axes(two_arms()), ElementsAre("setting.fa", "setting.n_threads"));
  // Each arm's own or all arms' together: one statement.
  Json apart = two_arms();
  apart.erase("settings");
  for (const char* arm : {"a", "b"}) apart["arms"][arm]["settings"]["n_threads"] = "2";
  EXPECT_THAT(setting_differences(two_arms(), apart), IsEmpty());
}

TEST(SettingAxes, ADifferenceOfAllArmsIsOneAndOfOneArmNamesIt) {
  Json cand = two_arms();
  cand["settings"]["n_threads"] = "4";
  cand["arms"]["b"]["settings"]["fa"] = "0";
  EXPECT_THAT(shown(setting_differences(two_arms(), cand)),
              ElementsAre("setting.fa|b|1|0", "setting.n_threads||2|4"));
}

TEST(SettingAxes, WhatOneOfTheTwoDoesntStateIsADifference) {
  Json cand = two_arms();
  cand["settings"]["new"] = "x";
  EXPECT_THAT(shown(setting_differences(two_arms(), cand)), ElementsAre("setting.new|||x"));
  EXPECT_THAT(shown(setting_differences(cand, two_arms())), ElementsAre("setting.new||x|"));
}

TEST(SettingAxes, AnArmThatOnlyOneHasIsHeldAgainstNothing) {
  Json cand = two_arms();
  cand["arms"]["c"] = {{"settings", {{"fa", "7"}}}};
  EXPECT_THAT(setting_differences(two_arms(), cand), IsEmpty());
}

TEST(SettingAxes, LoadsAreHeldScenarioByScenario) {
  const auto loads = [](const Json& of) { return Json{{"arms", {{"a", {{"loads", of}}}}}}; };
  const Json sweep = loads({{"c2", {{"n", "16"}}}, {"c4", {{"n", "32"}}}});
  EXPECT_THAT(setting_differences(sweep, loads({{"c4", {{"n", "32"}}}})), IsEmpty());
  EXPECT_THAT(
      shown(setting_differences(sweep, loads({{"c2", {{"n", "16"}}}, {"c4", {{"n", "64"}}}}))),
      ElementsAre("setting.n|a|c4: 32|c4: 64"));
  EXPECT_THAT(shown(setting_differences(sweep, loads({{"c8", {{"n", "64"}}}}))),
              ElementsAre("setting.n||16, 32|64"));
  EXPECT_THAT(setting_axes(sweep), ElementsAre("setting.n"));
}

TEST(SettingAxes, AModelsStatementsAreOfTheAxisModel) {
  Json cand = two_arms();
  cand["models"]["m"]["n_params"] = "11";
  EXPECT_THAT(shown(setting_differences(two_arms(), cand)),
              ElementsAre("model|m|n_params 10|n_params 11"));
}

TEST(SettingAxes, CompareRefusesThemUnlessTheyAreNamed) {
  TwoArms base(11);
  TwoArms cand(12);
  base.bundle.raw().manifest["identity"]["settings"] = {{"n_threads", "2"}};
  cand.bundle.raw().manifest["identity"]["settings"] = {{"n_threads", "1"}};
  for (TwoArms* each : {&base, &cand}) {
    for (const char* arm : {"eager", "compiled"}) {
      each->bundle.raw().manifest["identity"]["arms"][arm]["unknown"] = {"setting.shell", "batch"};
    }
  }
  const Bundle left = base.bundle.build();
  const Bundle right = cand.bundle.build();
  const auto refused = compare(left, right, {}, {});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("setting.n_threads: expected \"2\", found \"1\""));
  EXPECT_EQ(parse_axis("setting.n_threads", left, right), "setting.n_threads");
  EXPECT_FALSE(parse_axis("setting.n_batch", left, right));
  const auto allowed = compare(left, right, {}, {"setting.n_threads"});
  ASSERT_TRUE(allowed) << allowed.error().message;
  EXPECT_THAT(allowed->unstated, ElementsAre("setting.shell"));
}

}  // namespace
}  // namespace assay
