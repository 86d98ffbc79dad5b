// Arms of backend command: their keys in a study file, and the number of their processes.
#include "study/command_arm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "study/default_processes.h"
#include "study/placeholders.h"
#include "study/sides.h"

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kCommand = "command: [bench, '{prompt_tokens}']";
constexpr const char* kPatterns = "patterns: '(?<tokens_per_s>\\d+) tok/s'";

std::string command_study(const std::string& keys, const std::string& rest = "") {
  return fmt::format(
      "name: s\nmodels: [{{path: any}}]\narms:\n  - {{name: x, backend: command, {}}}\nphases: "
      "[e2e_kv]\nscenarios: [prompt_8]\ntoken_lengths: [4]\n{}\n",
      keys, rest);
}

std::string keys(const std::string& command, const std::string& patterns = kPatterns) {
  return command + ", " + patterns;
}

std::string problem_of(const std::string& arm_keys, const std::string& rest = "") {
  const auto study = parse_study(command_study(arm_keys, rest), "s.yaml");
  return study ? "no problem" : study.error().message;
}

Study parsed(const std::string& arm_keys, const std::string& rest = "") {
  const auto study = parse_study(command_study(arm_keys, rest), "s.yaml");
  EXPECT_TRUE(study) << study.error().message;
  return study.value_or(Study{});
}

std::vector<std::string> names(const Study& study) {
  std::vector<std::string> all;
  for (const StudyArm& arm : study.arms) all.push_back(arm.name);
  return all;
}

TEST(CommandArm, KeepsItsKeysAndNeedsNeitherModeNorCache) {
  const StudyArm arm = parsed(keys(kCommand) +
                              ", workdir: '{checkout}/x', env: {A: '{model}', B: ''}, checkout: "
                              "{repo: r, revisions: main}")
                           .arms[0];
  EXPECT_EQ(arm.options["command"], Json({"bench", "{prompt_tokens}"}));
  EXPECT_EQ(arm.options["env"], Json({{"A", "{model}"}, {"B", ""}}));
  EXPECT_EQ(arm.options["checkout"], Json({{"repo", "r"}, {"revision", "main"}}));
  EXPECT_EQ(arm.mode + arm.cache + arm.dynamic, "");
  EXPECT_EQ(parsed(keys(kCommand) + ", mode: reduce-overhead").arms[0].mode, "reduce-overhead");
}

TEST(CommandArm, ACommandIsOneValueAndRevisionsMakeArms) {
  EXPECT_THAT(names(parsed(keys(kCommand))), ElementsAre("x"));
  const Study study = parsed(keys(kCommand) +
                             ", checkout: {repo: r, revisions: [v1, v2]}, "
                             "cache: [static, dynamic]");
  EXPECT_THAT(names(study),
              ElementsAre("x-v1-static", "x-v1-dynamic", "x-v2-static", "x-v2-dynamic"));
  EXPECT_EQ(study.arms[2].options["checkout"]["revision"], "v2");
}

struct RefusedArm {
  std::string keys;
  std::string expected;
};
class RefusedCommand : public testing::TestWithParam<RefusedArm> {};
TEST_P(RefusedCommand, IsRefusedInOneLine) {
  const std::string problem = problem_of(GetParam().keys);
  EXPECT_THAT(problem, HasSubstr(GetParam().expected));
  EXPECT_THAT(problem, HasSubstr("s.yaml"));
  EXPECT_EQ(problem.find('\n'), std::string::npos);
}
INSTANTIATE_TEST_SUITE_P(
    CommandArm, RefusedCommand,
    testing::Values(
        RefusedArm{kPatterns, "expected the key \"command\""},
        RefusedArm{kCommand, "expected the key \"patterns\""},
        RefusedArm{keys("command: bench -n 3"), "list of arguments"},
        RefusedArm{keys("command: [bench]") + ", shell: true", "one text with shell"},
        RefusedArm{keys("command: [bench, '{prompt_token}']"),
                   "found {prompt_token} (did you mean \"prompt_tokens\"?)"},
        RefusedArm{keys("command: ['']"), "a program's name"},
        RefusedArm{keys(kCommand) + ", workdir: '{folder}'", "placeholders"},
        RefusedArm{keys(kCommand) + ", env: {A: '{modle}'}", "did you mean \"model\""},
        RefusedArm{keys(kCommand) + ", env: {'A=B': x}", "a variable's name"},
        RefusedArm{keys("command: [bench, '{checkout}']"), "the key \"checkout\""},
        RefusedArm{keys("command: [bench, '{samples}']") + ", samples: 3", "found both"},
        RefusedArm{keys(kCommand) + ", checkout: {repo: r, revisions: ['--all']}", "revision"},
        RefusedArm{keys(kCommand) + ", checkout: {revisions: [a]}", "the key \"repo\""},
        RefusedArm{keys(kCommand, "patterns: '(?<tok_per_s>x)'"), "found \"tok_per_s\""},
        RefusedArm{keys(kCommand, "patterns: '(\\d+)'"), "a group named after its figure"},
        RefusedArm{keys(kCommand, "patterns: '(?<tokens_per_s>('"), "a regular expression"},
        RefusedArm{keys(kCommand, "patterns: ['(?<latency_s>x)', '(?<latency_s>y)']"), "again"},
        RefusedArm{keys(kCommand, "patterns: '(?<tokens>\\d+)'"), "a time or a rate"},
        RefusedArm{keys(kCommand, "patterns: '(?<ttft_ms>\\d+)'"), "a time or a rate"},
        RefusedArm{keys(kCommand) + ", python: x", "no such key in an arm of backend command"}));

TEST(CommandArm, KeysOfCommandsAreRefusedInOtherArms) {
  const auto study = parse_study(
      "name: s\nmodels: [{path: m}]\narms: [{name: x, backend: native, mode: eager, cache: static, "
      "checkout: {repo: r}}]\nphases: [prefill]\nscenarios: [prompt_8]\n",
      "s.yaml");
  ASSERT_FALSE(study);
  EXPECT_THAT(study.error().message, HasSubstr("no such key in an arm of backend native"));
}

TEST(CommandArm, TtftIsATimeWhereThereIsPrefillAlone) {
  std::string text = command_study(keys(kCommand, "patterns: '(?<ttft_ms>\\d+)'"));
  text.replace(text.find("e2e_kv"), 6, "prefill");
  EXPECT_TRUE(parse_study(text, "s.yaml"));
}

TEST(CommandArm, AnInvocationIsAProcessAndHasItsSamples) {
  Study one = parsed(keys(kCommand), "repetitions: 12");
  EXPECT_EQ(one.warmup, 0) << "an invocation's only sample is no warm-up";
  settle_processes(one);
  EXPECT_EQ(one.processes, 12);
  EXPECT_EQ(one.arms[0].options["samples"], 1);
  EXPECT_EQ(one.arms[0].options[kTimeoutOption], 120);

  Study five = parsed(keys(kCommand) + ", samples: 5", "repetitions: 12");
  EXPECT_EQ(five.warmup, 3);
  settle_processes(five);
  EXPECT_EQ(five.processes, 6) << "two a process, behind three warm-ups";

  Study asked = parsed(keys("command: [bench, '{samples}']"), "repetitions: 12");
  settle_processes(asked);
  EXPECT_EQ(asked.processes, 5);
  EXPECT_EQ(asked.arms[0].options["samples"], 3 + 3) << "warm-ups, and the largest share of 12";
}

TEST(CommandArm, AStudyThatAsksForWhatInvocationsCantGiveIsRefused) {
  EXPECT_THAT(problem_of(keys(kCommand), "warmup: 1"), HasSubstr("at most 0 warm-ups"));
  EXPECT_THAT(problem_of(keys(kCommand), "repetitions: 12\nprocesses: 4"),
              HasSubstr("at least 12 processes"));
  EXPECT_THAT(problem_of(keys(kCommand) + ", samples: 8", "repetitions: 4\nprocesses: 1"),
              HasSubstr("expected processes: 2 or more"));
  EXPECT_EQ(problem_of(keys(kCommand) + ", samples: 8",
                       "repetitions: 4\nprocesses: 1\norder: sequential"),
            "no problem");
  EXPECT_THAT(problem_of(keys(kCommand), "stopping: {max_repetitions: 50, relative_ci: 0.1}"),
              HasSubstr("no stopping by relative_ci"));
  std::string ramp = command_study(keys(kCommand));
  ramp.replace(ramp.find("prompt_8"), 8, "{name: r, prompt_tokens: [1, 2]}");
  const auto study = parse_study(ramp, "s.yaml");
  ASSERT_FALSE(study);
  EXPECT_THAT(study.error().message, HasSubstr("expected one prompt length"));
}

TEST(CommandArm, SidesAreRevisionsOrWhatStandsForSide) {
  const StudySides sides = {"v1", "v2"};
  const auto revisions = two_sided(parsed(keys(kCommand) + ", checkout: {repo: r}"), sides);
  ASSERT_TRUE(revisions) << revisions.error().message;
  EXPECT_THAT(names(*revisions), ElementsAre("x@base", "x@cand"));
  EXPECT_EQ(revisions->arms[1].options["checkout"], Json({{"repo", "r"}, {"revision", "v2"}}));

  const auto programs = two_sided(parsed(keys("command: ['{side}', -x]")), sides);
  ASSERT_TRUE(programs) << programs.error().message;
  EXPECT_EQ(programs->arms[0].options[kSideOption], "v1");

  EXPECT_THAT(two_sided(parsed(keys(kCommand)), sides).error().message, HasSubstr("found neither"));
  const auto named = parsed(keys(kCommand) + ", checkout: {repo: r, revisions: main}");
  EXPECT_THAT(two_sided(named, sides).error().message, HasSubstr("a checkout without revisions"));
}

TEST(Placeholders, AreWordsInBraces) {
  EXPECT_THAT(*placeholders_of("{model} {\"a\": 1} {{batch}} {} {Model} {1}"),
              ElementsAre("model"));
  EXPECT_EQ(fill_placeholders("{model}/{{model}}/{batch}/{x", {{"model", "{batch}"}}),
            "{batch}/{model}/{batch}/{x")
      << "a value isn't filled again";
  EXPECT_FALSE(placeholders_of("{modell}"));
}

}  // namespace
}  // namespace assay
