// Keeps each member of a file that no field is made for, under its own name.
#include "import/formats/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "import/import_fixture.h"

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> settings_in(const ImportedRun& run) {
  std::vector<std::string> texts;
  for (const StatedSetting& setting : run.settings) {
    texts.push_back(setting.name + "=" + setting.value);
  }
  return texts;
}

std::vector<std::string> settings_in(const char* text, const SettingRules& rules = {}) {
  ImportedRun run;
  EXPECT_TRUE(add_settings(*parse_json(text, "file"), rules, "file", run));
  return settings_in(run);
}

TEST(Settings, EveryScalarIsOneUnderItsOwnName) {
  EXPECT_THAT(settings_in(R"({"a": 1, "b": "x", "c": false, "d": 0.5, "e": {"f": {"g": 2}}})"),
              ElementsAre("a=1", "b=x", "c=false", "d=0.5", "e.f.g=2"));
  EXPECT_THAT(settings_in(R"({"a": null, "b": "", "c": [], "d": {}})"), IsEmpty());
}

TEST(Settings, AListIsOneUnlessItHasAFigureASample) {
  const char* text =
      R"({"a": [1, 2], "b": ["x"], "c": [7], "d": [{"name": "p", "n": 1}, {"n": 2}]})";
  EXPECT_THAT(settings_in(text),
              ElementsAre("a=[1,2]", "b=[\"x\"]", "c=[7]", "d.p.name=p", "d.p.n=1", "d.1.n=2"));
  EXPECT_THAT(settings_in(text, {.samples = 1}),
              ElementsAre("a=[1,2]", "b=[\"x\"]", "d.p.name=p", "d.p.n=1", "d.1.n=2"));
  EXPECT_THAT(settings_in(text, {.samples = 2}), ElementsAre("b=[\"x\"]", "c=[7]"));
}

TEST(Settings, WhatIsNoneIsLeftOutWithAllInsideIt) {
  EXPECT_THAT(settings_in(R"({"a": {"b": 1}, "c": {"a": 1, "d": 2}})",
                          {.prefix = "p.", .is_other = one_of({"p.a", "p.c.d"})}),
              ElementsAre("p.c.a=1"));
}

TEST(Settings, LongTextsDifferByTheirHash) {
  const std::string text(1000, 'x');
  EXPECT_EQ(setting_text("short"), "short");
  EXPECT_LT(setting_text(text).size(), 120U);
  EXPECT_NE(setting_text(text + "a"), setting_text(text + "b"));
  EXPECT_NE(setting_text("a\nb"), setting_text("a\\nb"));
  EXPECT_EQ(setting_text("a\nb").find('\n'), std::string::npos);
}

TEST(Settings, ANameThatComesTwiceKeepsBothValues) {
  EXPECT_THAT(settings_in(R"({"a.b": 1, "a": {"b": 2}})"), ElementsAre("a.b=1, 2"));
}

TEST(Settings, MoreThanTheBoundAreRefused) {
  Json object = Json::object();
  for (size_t i = 0; i <= kMostSettings; ++i) object[fmt::format("k{}", i)] = 1;
  ImportedRun run;
  const auto added = add_settings(object, {}, "file: part", run);
  ASSERT_FALSE(added);
  EXPECT_THAT(added.error().message, HasSubstr("file: part: expected at most 2000 settings"));
}

// Settings of a CSV.

constexpr const char* kArmMapping =
    "columns: {arm: arm, latency: t_ms}\nconstants: {phase: prefill, model: m}\n";

TEST(Settings, AColumnThatIsTheSameInAllRowsOfAnArmIsOneOfThatArm) {
  const auto imported = import_text(
      "arm,t_ms,host,flags,seq\na,1,h,x,1\na,2,h,x,2\nb,1,h,y,3\nb,2,h,y,4\n", kArmMapping);
  ASSERT_TRUE(imported) << imported.error().message;
  ASSERT_EQ(imported->runs.size(), 2U);
  EXPECT_THAT(settings_in(imported->runs[0]), ElementsAre("host=h", "flags=x"));
  EXPECT_THAT(settings_in(imported->runs[1]), ElementsAre("host=h", "flags=y"));
  ASSERT_EQ(imported->notes.size(), 1U);
  EXPECT_THAT(imported->notes[0], HasSubstr("the mapping doesn't name seq, which"));
}

TEST(Settings, OneRowDoesntShowThatAColumnIsTheSameInAll) {
  const auto imported = import_text("arm,t_ms,host\na,1,h\nb,1,h\n", kArmMapping);
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_THAT(settings_in(imported->runs[0]), IsEmpty());
  EXPECT_THAT(imported->notes, ElementsAre(HasSubstr("doesn't name host")));
}

TEST(Settings, AMappingNamesColumnsThatAreSettingsAndOthersThatAreNothing) {
  const std::string mapping = std::string(kArmMapping) + "settings: [threads]\nignored: [seq]\n";
  const auto imported = import_text("arm,t_ms,threads,seq\na,1,1,1\na,2,4,1\na,2,4,1\n", mapping);
  ASSERT_TRUE(imported) << imported.error().message;
  ASSERT_EQ(imported->runs.size(), 2U);
  EXPECT_THAT(settings_in(imported->runs[0]), ElementsAre("threads=1"));
  EXPECT_EQ(imported->runs[1].samples.size(), 2U);
  EXPECT_THAT(imported->notes, IsEmpty());
  EXPECT_THAT(import_refusal("arm,t_ms\na,1\n", mapping), HasSubstr("the column \"threads\""));
  EXPECT_THAT(import_refusal("arm,t_ms\na,1\n", std::string(kArmMapping) + "settings: [arm]\n"),
              HasSubstr("a column that is named once"));
}

}  // namespace
}  // namespace assay
