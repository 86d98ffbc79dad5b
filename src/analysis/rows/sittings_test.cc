// Tests several sittings of one bundle: whose rows are whose, and what differed.
#include "analysis/rows/sittings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/analyze.h"
#include "analysis/rows/synthetic_bundle.h"

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Json machine(const std::string& uuid) {
  return {{"host",
           {{"memory", {{"available_bytes", uuid.size()}}},
            {"system", {{"kernel", "6.1"}, {"load_1min", 0.1}}}}},
          {"gpus", {{{"name", "H200"}, {"uuid", uuid}}}},
          {"arms",
           {{"eager", {{"interpreter", {{"cuda_uuid", uuid}}}}},
            {"static", {{"interpreter", {{"cuda_uuid", uuid}}}}}}},
          {"warnings", Json::array()}};
}

TEST(Environments, DifferInWhatIsNotLoad) {
  Json before = machine("GPU-1");
  EXPECT_THAT(environment_differences(before, before), IsEmpty());
  Json now = machine("GPU-22");
  now["host"]["system"]["load_1min"] = 3;
  now["warnings"] = {"load average 3"};
  EXPECT_THAT(environment_differences(before, now),
              ElementsAre(EnvironmentDifference{"arms.interpreter.cuda_uuid", "GPU-1", "GPU-22"},
                          EnvironmentDifference{"gpus.uuid", "GPU-1", "GPU-22"}));
}

TEST(Environments, AMemberThatOneHasAloneDiffers) {
  Json before = machine("GPU-1");
  Json now = before;
  now["host"]["system"]["boot_id"] = "b";
  now["gpus"].push_back({{"name", "H200"}, {"uuid", "GPU-2"}});
  before["threads"] = 4;
  EXPECT_THAT(environment_differences(before, now),
              ElementsAre(EnvironmentDifference{"gpus.name", "", "H200"},
                          EnvironmentDifference{"gpus.uuid", "", "GPU-2"},
                          EnvironmentDifference{"host.system.boot_id", "", "b"},
                          EnvironmentDifference{"threads", "4", ""}));
  EXPECT_THAT(environment_differences(nullptr, Json::parse("[1, [2]]")),
              ElementsAre(EnvironmentDifference{"", "", "1, [2]"}));
}

TEST(Environments, AreToldBrieflyWhereTheyAreMany) {
  std::vector<EnvironmentDifference> differences = {{"a", "1", ""},
                                                    {"b", std::string(99, 'x'), ""}};
  EXPECT_EQ(difference_text(differences, 12, true), "a (1, then none), b");
  EXPECT_EQ(difference_text(differences, 12, false), "a, b");
  EXPECT_EQ(difference_text(differences, 1, false), "a and 1 more");
  EXPECT_EQ(difference_text({}, 1, true), "");
}

// Two arms of two conditions, each with 4 rows; "static" of the second is of the second sitting.
struct TwoSittings {
  explicit TwoSittings(const std::string& second_gpu) {
    for (const char* scenario : {"short", "long"}) {
      for (const char* arm : {"eager", "static"}) {
        last = bundle.add(
            {.arm = arm, .scenario = scenario, .noise = 0.01, .repetitions = 4, .warmup = 0});
      }
    }
    int64_t place = 0;
    for (Row& row : bundle.raw().rows) row.order_index = place++;
    bundle.raw().environment = machine("GPU-1");
    bundle.raw().sittings = {{"2026-11-21T18:50:11Z", 1, 0, 0, machine("GPU-1")},
                             {"2026-11-21T22:04:02Z", 2, 3, 12, machine(second_gpu)}};
  }

  std::vector<Finding> found() {
    AnalysisOptions options;
    options.resamples = 200;
    std::vector<Finding> of_kind;
    findings = *analyze(bundle.build(), options, nullptr);
    for (const Finding& finding : findings.named) {
      if (finding.kind == "several_sittings") of_kind.push_back(finding);
    }
    return of_kind;
  }

  SyntheticBundle bundle{3};
  std::string last;
  Findings findings;
};

TEST(SeveralSittings, OnAnotherGpuAreAWarningThatNamesTheArms) {
  TwoSittings two("GPU-2");
  const auto found = two.found();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].severity, Severity::kWarning);
  EXPECT_FALSE(found[0].stratum);
  EXPECT_EQ(found[0].text,
            "the bundle was measured in several sittings: sitting 1 (2026-11-21T18:50:11Z) rows "
            "0..11, sitting 2 "
            "(2026-11-21T22:04:02Z) rows 12..15; between them differ: arms.interpreter.cuda_uuid "
            "(GPU-1, then GPU-2), gpus.uuid (GPU-1, then GPU-2)");
  EXPECT_EQ(found[1].severity, Severity::kWarning);
  ASSERT_TRUE(found[1].stratum);
  EXPECT_EQ(two.findings.strata[*found[1].stratum].scenario, "long");
  EXPECT_THAT(found[1].text, HasSubstr("eager in sitting 1; static in sitting 2; between them"));
  EXPECT_THAT(found[1].rows.at(two.last), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(found[1].rows.size(), 1u);
}

TEST(SeveralSittings, OnTheSameMachineAreANote) {
  TwoSittings two("GPU-1");
  const auto found = two.found();
  ASSERT_EQ(found.size(), 2u);
  for (const Finding& finding : found) {
    EXPECT_EQ(finding.severity, Severity::kNote);
    EXPECT_THAT(finding.text, HasSubstr("the same machine"));
  }
}

TEST(SeveralSittings, ArmsOfTheSameSittingsAreNotNamed) {
  TwoSittings two("GPU-2");
  two.bundle.raw().sittings[1].rows_before = 8;  // all of "long"
  const auto found = two.found();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_FALSE(found[0].stratum);
}

TEST(SeveralSittings, OneThatMeasuredNothingIsListedAndNoFinding) {
  TwoSittings two("GPU-2");
  two.bundle.raw().sittings[1].rows_before = 16;
  EXPECT_THAT(two.found(), IsEmpty());
  ASSERT_EQ(two.findings.sittings.size(), 2u);
  EXPECT_EQ(sitting_rows(two.findings.sittings[1]), "no rows");
}

TEST(SeveralSittings, AreInTheJson) {
  TwoSittings two("GPU-2");
  two.found();
  const Json json = findings_to_json(two.findings);
  EXPECT_EQ(json["schema_version"], kFindingsSchemaVersion);
  ASSERT_EQ(json["sittings"].size(), 2u);
  EXPECT_EQ(json["sittings"][0], (Json{{"started_at", "2026-11-21T18:50:11Z"},
                                       {"first_row", 0},
                                       {"rows", 12},
                                       {"differs_from_first", Json::array()}}));
  EXPECT_EQ(json["sittings"][1]["first_row"], 12);
  EXPECT_EQ(json["sittings"][1]["differs_from_first"][1],
            (Json{{"field", "gpus.uuid"}, {"first", "GPU-1"}, {"here", "GPU-2"}}));
}

TEST(SeveralSittings, EachOnesWarningsAreFindings) {
  TwoSittings two("GPU-1");
  two.bundle.raw().environment["warnings"] = {"debug build"};
  two.bundle.raw().sittings[1].environment["warnings"] = {"debug build", "load average 3.1"};
  two.found();
  std::vector<std::string> texts;
  for (const Finding& finding : two.findings.named) {
    if (finding.kind == "environment") texts.push_back(finding.text);
  }
  EXPECT_THAT(texts, ElementsAre("debug build", "sitting 2: load average 3.1"));
}

TEST(SeveralSittings, OneSittingIsNoFinding) {
  TwoSittings two("GPU-2");
  two.bundle.raw().sittings.pop_back();
  EXPECT_THAT(two.found(), IsEmpty());
  EXPECT_EQ(two.findings.sittings.size(), 1u);
}

}  // namespace
}  // namespace assay
