// The study of `assay bench` parses, and its plan is the one that people would write.
#include "study/bench_study.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "study/plan.h"
#include "study/study.h"

namespace assay {
namespace {

using testing::ElementsAre;

Study parsed(const BenchTests& tests) {
  const auto study = parse_study(bench_study(tests), "bench");
  EXPECT_TRUE(study) << study.error().message << "\n" << bench_study(tests);
  return study.value_or(Study{});
}

std::vector<std::string> cells_of(const Study& study) {
  std::vector<std::string> ids;
  for (const Cell& cell : make_plan(study).cells) ids.push_back(cell.id);
  return ids;
}

TEST(BenchStudy, PrefillsPromptsAndDecodesBehindOneToken) {
  const Study study = parsed({.models = {{"m", "models/m"}}, .dtype = ""});
  EXPECT_THAT(
      cells_of(study),
      ElementsAre("c000-eager-m-prefill-prompt_128-b1", "c001-compiled-m-prefill-prompt_128-b1",
                  "c002-eager-m-prefill-prompt_512-b1", "c003-compiled-m-prefill-prompt_512-b1",
                  "c004-eager-m-kv_decode-prompt_1-b1-n64",
                  "c005-compiled-m-kv_decode-prompt_1-b1-n64"));
  EXPECT_EQ(study.repetitions, 20);
  EXPECT_EQ(study.order, RunOrder::kInterleaved);
  EXPECT_EQ(study.baseline, "eager");
}

TEST(BenchStudy, IsThePlanOfAStudyFileThatSaysTheSame) {
  const BenchTests tests{.models = {{"m", "models/m"}},
                         .dtype = "",
                         .prompts = {7},
                         .generations = {4, 8},
                         .depths = {7},
                         .arms = {"compiled"},
                         .caches = {"dynamic", "static"},
                         .device = "cuda:1",
                         .threads = {2},
                         .repetitions = 6};
  const auto written = parse_study(R"(
name: bench
models: {path: models/m}
arms:
  - {name: compiled-dynamic, backend: native, mode: compiled, cache: dynamic, dynamic: true, threads: 2, device: "cuda:1"}
  - {name: compiled-static, backend: native, mode: compiled, cache: static, dynamic: false, threads: 2, device: "cuda:1"}
phases: [prefill, kv_decode]
scenarios: prompt_7
token_lengths: [4, 8]
repetitions: 6
warmup: 1
parity: after
)",
                                   "written");
  ASSERT_TRUE(written) << written.error().message;
  const Study study = parsed(tests);
  EXPECT_EQ(to_json_text(plan_to_json(study, make_plan(study))),
            to_json_text(plan_to_json(*written, make_plan(*written))));
}

TEST(BenchStudy, SeveralDepthsAndThreadsAreCellsAndArms) {
  const Study study = parsed({.models = {{"m", "m"}},
                              .prompts = {8},
                              .generations = {4},
                              .depths = {1, 8},
                              .arms = {"eager"},
                              .threads = {1, 2}});
  EXPECT_THAT(cells_of(study), ElementsAre("c000-eager-t1-m-prefill-prompt_8-b1",
                                           "c001-eager-t2-m-prefill-prompt_8-b1",
                                           "c002-eager-t1-m-kv_decode-prompt_8-b1-n4",
                                           "c003-eager-t2-m-kv_decode-prompt_8-b1-n4",
                                           "c004-eager-t1-m-kv_decode-prompt_1-b1-n4",
                                           "c005-eager-t2-m-kv_decode-prompt_1-b1-n4"));
  EXPECT_EQ(study.arms[1].threads, 2);
}

// The arms' type, not that of the weights.
TEST(BenchStudy, Fp8IsOfTheArms) {
  const Study study =
      parsed({.models = {{"m", "m"}}, .dtype = "fp8", .arms = {"eager", "compiled"}});
  EXPECT_EQ(study.models[0].dtype, "");
  for (const StudyArm& arm : study.arms) EXPECT_EQ(arm.options.at("dtype"), "fp8");
}

// The recompile limit is so high that no cell of many finds it reached.
TEST(BenchStudy, CompiledArmsSpecialiseUnlessAskedOtherwise) {
  BenchTests tests{.models = {{"m", "m"}}, .batches = {1, 2, 4}, .arms = {"compiled", "eager"}};
  Study study = parsed(tests);
  EXPECT_EQ(study.arms[0].dynamic, "false");
  EXPECT_EQ(study.arms[0].options["recompile_limit"], 9);
  EXPECT_EQ(study.arms[1].dynamic, "");
  tests.batches = {1};
  tests.dynamic = "auto";
  tests.arms = {"compiled", "eager", "torch:default"};
  study = parsed(tests);
  EXPECT_EQ(study.arms[0].dynamic, "auto");
  EXPECT_EQ(study.arms[0].options.count("recompile_limit"), 0u);
  EXPECT_EQ(study.arms[1].dynamic, "");
  EXPECT_EQ(study.arms[2].dynamic, "auto");
  tests.dynamic = "true";
  EXPECT_EQ(parsed(tests).arms[2].dynamic, "true");
}

TEST(BenchStudy, LeavesOutWhatThereIsNoTestOf) {
  EXPECT_THAT(cells_of(parsed({.models = {{"m", "m"}},
                               .dtype = "",
                               .prompts = {},
                               .batches = {1, 2},
                               .arms = {"torch:reduce-overhead"}})),
              ElementsAre("c000-torch-reduce-overhead-m-kv_decode-prompt_1-b1-n64",
                          "c001-torch-reduce-overhead-m-kv_decode-prompt_1-b2-n64"));
  EXPECT_THAT(cells_of(parsed({.models = {{"m", "m"}},
                               .dtype = "",
                               .prompts = {9},
                               .generations = {},
                               .arms = {"eager"}})),
              ElementsAre("c000-eager-m-prefill-prompt_9-b1"));
}

TEST(BenchStudy, AnyPathIsQuoted) {
  const std::string path = "a: {b}, \"c\" #d \u00e9";
  const Study study = parsed({.models = {{"m", path}}, .dtype = "bf16"});
  ASSERT_EQ(study.models.size(), 1u);
  EXPECT_EQ(study.models[0].path, path);
  EXPECT_EQ(study.models[0].dtype, "bf16");
}

}  // namespace
}  // namespace assay
