// The time estimate: what it counts, and when it has no answer.
#include "study/estimate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "study/gpu_arm.h"

namespace assay {
namespace {

Study one_cell(Phase phase, int64_t prompt, int64_t new_tokens) {
  Study study;
  study.models = {{.name = "m", .path = "m", .dtype = ""}};
  study.arms = {
      {.name = "a", .backend = "native", .mode = "eager", .cache = "static", .dynamic = ""}};
  study.phases = {phase};
  study.scenarios = {{.name = "s", .prompt_tokens = {prompt}, .text = ""}};
  study.token_lengths = {new_tokens};
  study.batch = {1};
  study.repetitions = 4;
  study.warmup = 1;
  return study;
}

TimeEstimate on_cpu(const Study& study) {
  const auto estimate = plan_estimate(
      study, make_plan(study), {.models = {{.bytes = 1e9, .layers = {}}}, .on_gpu = {false}});
  return estimate.value_or(TimeEstimate{-1, -1, -1, -1});
}

double seconds(const Study& study) {
  return on_cpu(study).repetitions_s;
}

TEST(Estimate, CountsReadsOfTheWeights) {
  EXPECT_DOUBLE_EQ(seconds(one_cell(Phase::kPrefill, 10, 8)), 5 * 0.1);
  EXPECT_DOUBLE_EQ(seconds(one_cell(Phase::kPrefill, 160, 8)), 5 * 1.0);
  EXPECT_DOUBLE_EQ(seconds(one_cell(Phase::kKvDecode, 10, 8)), 5 * 0.8)
      << "the untimed prefill too";
  EXPECT_DOUBLE_EQ(seconds(one_cell(Phase::kE2eKv, 160, 1)), 5 * 1.0)
      << "prefill gives the first token";
}

TEST(Estimate, AStartReadsTheWeightsOnceAProcess) {
  Study study = one_cell(Phase::kPrefill, 10, 8);
  EXPECT_DOUBLE_EQ(on_cpu(study).starting_s, 2 * 0.1) << "one is parity's";
  study.parity = ParityTime::kAfter;
  EXPECT_DOUBLE_EQ(on_cpu(study).starting_s, 0.1);
  study.processes = 4;
  EXPECT_DOUBLE_EQ(on_cpu(study).starting_s, 4 * 0.1);
  EXPECT_DOUBLE_EQ(on_cpu(study).repetitions_s, 8 * 0.1) << "each process warms up";
}

TEST(Estimate, AbsentWhereAModelIsntKnown) {
  const Study study = one_cell(Phase::kPrefill, 10, 8);
  EXPECT_FALSE(plan_estimate(study, make_plan(study), {.models = {{}}, .on_gpu = {false}}));
  const ModelSize no_layers = {.bytes = 1e9, .layers = {}};
  EXPECT_FALSE(plan_estimate(study, make_plan(study), {.models = {no_layers}, .on_gpu = {true}}));
}

// An arm of PyTorch on a GPU, on a model of 10 layers.
TimeEstimate on_gpu(Study study, const std::string& mode, Json options = Json::object(),
                    double bytes = 1e9, ParityTime parity = ParityTime::kAfter) {
  study.arms[0].backend = "torch";
  study.arms[0].mode = mode;
  study.arms[0].options = std::move(options);
  study.parity = parity;
  const auto estimate = plan_estimate(
      study, make_plan(study), {.models = {{.bytes = bytes, .layers = 10}}, .on_gpu = {true}});
  return estimate.value_or(TimeEstimate{-1, -1, -1, -1});
}

TEST(Estimate, OnAGpuLayersCountUntilTheReadIsLonger) {
  const Study prefill = one_cell(Phase::kPrefill, 10, 8);
  const Study decode = one_cell(Phase::kKvDecode, 10, 8);
  EXPECT_DOUBLE_EQ(on_gpu(prefill, "eager").repetitions_s, 5 * 10 * kEagerLayerSeconds);
  EXPECT_DOUBLE_EQ(on_gpu(decode, "eager").repetitions_s, 5 * 9 * 10 * kEagerLayerSeconds);
  EXPECT_DOUBLE_EQ(on_gpu(decode, "default").repetitions_s, 5 * 9 * 10 * kCompiledLayerSeconds);
  EXPECT_DOUBLE_EQ(on_gpu(decode, "manual-cudagraph").repetitions_s,
                   5 * 10 * (kEagerLayerSeconds + 8 * kGraphedLayerSeconds));
  EXPECT_DOUBLE_EQ(on_gpu(decode, "eager", {}, 100e9).repetitions_s, 5 * 9 * 0.1);
  EXPECT_DOUBLE_EQ(on_gpu(one_cell(Phase::kPrefill, 2560, 8), "eager", {}, 1e9).repetitions_s,
                   5 * 0.01)
      << "ten reads' worth of tokens";
}

TEST(Estimate, OnAGpuEveryGraphIsCompiledForTheCellAndForParityBeforeIt) {
  const double graph = 10 * kCompileLayerSeconds;
  const Study decode = one_cell(Phase::kKvDecode, 10, 8);
  EXPECT_DOUBLE_EQ(on_gpu(one_cell(Phase::kPrefill, 10, 8), "default").preparing_s, graph);
  EXPECT_DOUBLE_EQ(on_gpu(decode, "default").preparing_s, 2 * graph);
  const double passes = 9 * 10 * kCompiledLayerSeconds;
  EXPECT_DOUBLE_EQ(on_gpu(decode, "default").parity_s, passes);
  EXPECT_DOUBLE_EQ(on_gpu(decode, "default", {}, 1e9, ParityTime::kBefore).parity_s,
                   2 * graph + passes);
  EXPECT_DOUBLE_EQ(on_gpu(one_cell(Phase::kKvDecode, 10, 512), "eager").parity_s,
                   513 * 10 * kEagerLayerSeconds)
      << "all that is generated is compared";
  EXPECT_DOUBLE_EQ(on_gpu(one_cell(Phase::kPrefill, 10, 8), "default").parity_s,
                   10 * kCompiledLayerSeconds)
      << "where no phase generates, lengths say nothing";
  EXPECT_DOUBLE_EQ(on_gpu(decode, "default", {{"compile_phases", "decode"}}).preparing_s, graph);
  EXPECT_DOUBLE_EQ(on_gpu(decode, "default").starting_s, kStartSeconds + 10 * kExplainLayerSeconds);
  EXPECT_DOUBLE_EQ(on_gpu(decode, "default", {{"explain", false}}).starting_s, kStartSeconds);
  EXPECT_DOUBLE_EQ(on_gpu(decode, "default", {{"torch_backend", "aot_eager"}}).preparing_s, 0);
  EXPECT_DOUBLE_EQ(on_gpu(decode, "eager").preparing_s, 0);
  EXPECT_DOUBLE_EQ(on_gpu(decode, "eager").starting_s, kStartSeconds);
}

TEST(Estimate, OnAGpuTheNativeEngineStartsAndCompilesFaster) {
  Study decode = one_cell(Phase::kKvDecode, 10, 8);
  decode.arms[0].backend = "native";
  decode.arms[0].cache = "static";
  const auto estimate = [&](const std::string& mode) {
    decode.arms[0].mode = mode;
    decode.parity = ParityTime::kAfter;
    return *plan_estimate(decode, make_plan(decode),
                          {.models = {{.bytes = 1e9, .layers = 10}}, .on_gpu = {true}});
  };
  EXPECT_DOUBLE_EQ(estimate("eager").repetitions_s, 5 * 9 * 10 * kNativeEagerLayerSeconds);
  EXPECT_DOUBLE_EQ(estimate("eager").preparing_s, 0);
  EXPECT_DOUBLE_EQ(estimate("compiled").preparing_s, 2 * kNativeCompileSeconds);
  EXPECT_DOUBLE_EQ(estimate("compiled").starting_s, kNativeStartSeconds);
}

TEST(Estimate, OnAGpuAGrowingCacheTakesMoreGraphs) {
  const auto graphs = [](int64_t new_tokens, const std::string& dynamic, Json options) {
    Study study = one_cell(Phase::kKvDecode, 10, new_tokens);
    study.arms[0].cache = "dynamic";
    study.arms[0].dynamic = dynamic;
    return std::round(on_gpu(study, "default", std::move(options)).preparing_s /
                      (10 * kCompileLayerSeconds));
  };
  EXPECT_EQ(graphs(1, "auto", {}), 2);
  EXPECT_EQ(graphs(8, "auto", {}), 3);
  EXPECT_EQ(graphs(8, "true", {}), 2);
  EXPECT_EQ(graphs(4, "false", {}), 5);
  EXPECT_EQ(graphs(64, "false", {}), 9);
  EXPECT_EQ(graphs(64, "false", {{"recompile_limit", 16}}), 17);
}

TEST(Estimate, OnAGpuACellIsPreparedWheneverItsWorkerServedAnother) {
  Study study = one_cell(Phase::kKvDecode, 10, 8);
  study.order = RunOrder::kInterleaved;
  study.repetitions = 10;  // two blocks, one arm: the same cell goes on
  EXPECT_DOUBLE_EQ(on_gpu(study, "default").preparing_s, 2 * 10 * kCompileLayerSeconds);
  study.token_lengths = {4, 8};
  EXPECT_DOUBLE_EQ(on_gpu(study, "default").preparing_s, 4 * 10 * kCompileLayerSeconds);
}

TEST(Estimate, OnAGpuEachProcessStartsExplainsAndCompilesAnew) {
  Study study = one_cell(Phase::kKvDecode, 10, 8);
  const double graph = 10 * kCompileLayerSeconds;
  const double start = kStartSeconds + 10 * kExplainLayerSeconds;
  study.processes = 3;
  EXPECT_DOUBLE_EQ(on_gpu(study, "default").preparing_s, 3 * 2 * graph);
  EXPECT_DOUBLE_EQ(on_gpu(study, "default").starting_s, 3 * start);
  EXPECT_DOUBLE_EQ(on_gpu(study, "default", {}, 1e9, ParityTime::kBefore).starting_s,
                   3 * start + kStartSeconds);
  const double asked = on_gpu(study, "default").parity_s;
  study.processes = 1;
  EXPECT_DOUBLE_EQ(on_gpu(study, "default").parity_s, asked) << "parity is asked once";
}

TEST(Estimate, WeightBytesAreThoseOfTheSafetensors) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / "assay_estimate_test";
  std::filesystem::remove_all(folder);
  EXPECT_FALSE(weight_bytes(folder));
  std::filesystem::create_directories(folder);
  EXPECT_FALSE(weight_bytes(folder)) << "no weights";
  std::ofstream(folder / "a.safetensors") << std::string(100, 'x');
  std::ofstream(folder / "b.safetensors") << std::string(23, 'x');
  std::ofstream(folder / "tokenizer.json") << "{}";
  EXPECT_EQ(weight_bytes(folder).value_or(0), 123);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace assay
