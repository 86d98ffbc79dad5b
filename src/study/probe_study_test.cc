// The study of `assay probe --save` holds the command as it stands, whatever its text.
#include "study/probe_study.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "study/command_arm.h"
#include "study/default_processes.h"
#include "study/placeholders.h"
#include "study/plan.h"
#include "study/study.h"

namespace assay {
namespace {

using testing::HasSubstr;

Study parsed_probe(const ProbedCommand& command) {
  const auto text = probe_study(command);
  EXPECT_TRUE(text) << text.error().message;
  auto study = parse_study(text.value_or(""), "probe");
  EXPECT_TRUE(study) << study.error().message << "\n" << text.value_or("");
  if (!study) return {};
  settle_processes(*study);
  return *std::move(study);
}

TEST(ProbeStudy, AnInvocationIsAProcessAndSkippedSamplesAreItsWarmUps) {
  const Study study = parsed_probe({.argv = {"bench"},
                                    .pattern = "(?<tokens_per_s>\\d+)",
                                    .samples = 6,
                                    .skip = 1,
                                    .invocations = 4,
                                    .timeout_s = 19,
                                    .cell = {"m", Phase::kKvDecode, 7, 50}});
  EXPECT_EQ(study.repetitions, 20);
  EXPECT_EQ(study.processes, 4);
  EXPECT_EQ(study.warmup, 1);
  EXPECT_DOUBLE_EQ(study.timeout_s, 20);  // of which the worker leaves the command all but a second
  ASSERT_EQ(study.arms.size(), 1U);
  EXPECT_EQ(fixed_samples(study.arms.front()), 6);
  EXPECT_EQ(make_plan(study).cells.front().id, "c000-command-m-kv_decode-prompt_7-b1-n50");
}

TEST(ProbeStudy, OneInvocationOfSeveralSamplesIsAStudyToo) {
  const Study study = parsed_probe(
      {.argv = {"bench"}, .pattern = "(?<latency_ms>\\d+)", .samples = 3, .invocations = 1});
  EXPECT_EQ(study.repetitions, 3);
  EXPECT_EQ(study.processes, 1);
}

TEST(ProbeStudy, ArgumentsStandForThemselves) {
  const std::vector<std::string> argv = {"a b",          "{model}",   "{{model}}", "{no_such}",
                                         "x{seed}{",     "'\"\\\n\t", "# no: 1",   "~",
                                         "\x7f\xc2\x85", "{}{a"};
  const Study study =
      parsed_probe({.argv = argv, .workdir = "{model}", .pattern = "\\Q{\\E(?<latency_s>\\d)"});
  ASSERT_EQ(study.arms.size(), 1U);
  const Json& options = study.arms.front().options;
  for (size_t i = 0; i < argv.size(); ++i) {
    EXPECT_EQ(fill_placeholders(options["command"][i].get<std::string>(),
                                {{"model", "FILLED"}, {"seed", "FILLED"}}),
              argv[i]);
  }
  EXPECT_EQ(fill_placeholders(options["workdir"].get<std::string>(), {{"model", "FILLED"}}),
            "{model}");
  EXPECT_EQ(options["patterns"][0], "\\Q{\\E(?<latency_s>\\d)");
}

TEST(ProbeStudy, WhatIsNoUtf8IsRefused) {
  const auto text = probe_study({.argv = {"cat", "\xff"}, .pattern = "(?<latency_s>.)"});
  ASSERT_FALSE(text);
  EXPECT_THAT(text.error().message, HasSubstr("expected a command in UTF-8"));
}

TEST(ProbeStudy, UnitsAreFigures) {
  EXPECT_EQ(figure_of_unit("tok/s"), "tokens_per_s");
  EXPECT_EQ(figure_of_unit("ms"), "latency_ms");
  EXPECT_EQ(figure_of_unit("ms/token"), "ms_per_token");
  EXPECT_EQ(figure_of_unit("GB/s"), std::nullopt);
  for (const std::string& unit : figure_units()) EXPECT_TRUE(figure_of_unit(unit)) << unit;
}

TEST(ProbeStudy, AGroupIsRenamedWhereItsBracketsAloneNameIt) {
  EXPECT_EQ(with_group_named("(?<v>\\d+) ms", "v", "latency_ms"), "(?<latency_ms>\\d+) ms");
  EXPECT_EQ(with_group_named("(?P<v>\\d+)", "v", "latency_ms"), "(?P<latency_ms>\\d+)");
  EXPECT_EQ(with_group_named("(?'v'\\d+)", "v", "latency_ms"), "(?'latency_ms'\\d+)");
  EXPECT_EQ(with_group_named("\\(?<v>(?<v>\\d)", "v", "latency_ms"), "\\(?<v>(?<latency_ms>\\d)");
  const auto refused = with_group_named("(?<v>\\d)\\k<v>", "v", "latency_ms");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("expected a group (?<latency_ms>...)"));
}

}  // namespace
}  // namespace assay
