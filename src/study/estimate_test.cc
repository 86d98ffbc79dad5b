// The time estimate: the parts that it counts, and cases without an answer.
#include "study/estimate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "base/records/backend_traits.h"
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

constexpr double kRead = 1e9 / kAssumedReadBytesPerS;

TEST(Estimate, CountsReadsOfTheWeightsAndTheHarnesssRows) {
  EXPECT_DOUBLE_EQ(seconds(one_cell(Phase::kPrefill, 10, 8)), 5 * (kRowSeconds + kRead));
  EXPECT_DOUBLE_EQ(seconds(one_cell(Phase::kPrefill, 160, 8)), 5 * (kRowSeconds + 10 * kRead));
  EXPECT_DOUBLE_EQ(seconds(one_cell(Phase::kKvDecode, 10, 8)), 5 * (kRowSeconds + 9 * kRead))
      << "the untimed prefill too";
  EXPECT_DOUBLE_EQ(seconds(one_cell(Phase::kE2eKv, 160, 1)), 5 * (kRowSeconds + 11 * kRead))
      << "a decode step follows the prefill's token";
}

TEST(Estimate, RowsOfATinyModelAreTheHarnesss) {
  const Study study = one_cell(Phase::kPrefill, 10, 8);
  const auto estimate =
      plan_estimate(study, make_plan(study), {.models = {{.bytes = 1000}}, .on_gpu = {false}});
  EXPECT_NEAR(estimate->repetitions_s, 5 * kRowSeconds, 1e-6);
}

TEST(Estimate, APassReadsTheVocabularyOnce) {
  const auto reads = [](Phase phase, int64_t prompt, int64_t batch) {
    Cell cell;
    cell.phase = phase;
    cell.new_tokens = phase == Phase::kPrefill ? 0 : 2;
    cell.batch = batch;
    const ModelSize model = {.bytes = 1e9, .vocabulary_bytes = 0.75e9};
    const double seconds =
        repetition_seconds(one_cell(phase, prompt, 2), cell, model, kAssumedReadBytesPerS);
    return (seconds - kRowSeconds) / kRead;
  };
  EXPECT_NEAR(reads(Phase::kPrefill, 10, 1), 1, 1e-9);
  EXPECT_NEAR(reads(Phase::kPrefill, 160, 1), 0.75 + 10 * 0.25, 1e-9);
  EXPECT_NEAR(reads(Phase::kKvDecode, 160, 1), 0.75 + 10 * 0.25 + 2, 1e-9);
  EXPECT_NEAR(reads(Phase::kPrefill, 10, 32), 0.75 + 20 * 0.25, 1e-9);
  EXPECT_NEAR(reads(Phase::kKvDecode, 10, 32), 0.75 + 20 * 0.25 + 2 * (0.75 + 2 * 0.25), 1e-9);
}

TEST(Estimate, AStartIsThatOfItsArmOnceAProcess) {
  Study study = one_cell(Phase::kPrefill, 10, 8);
  const double start = *start_seconds(study.arms[0], 1e9);
  EXPECT_GT(start, 0.3) << "a gigabyte is mapped";
  EXPECT_DOUBLE_EQ(on_cpu(study).starting_s, 2 * start) << "one is parity's";
  study.parity = ParityTime::kAfter;
  EXPECT_DOUBLE_EQ(on_cpu(study).starting_s, start);
  study.processes = 4;
  EXPECT_DOUBLE_EQ(on_cpu(study).starting_s, 4 * start);
  EXPECT_DOUBLE_EQ(on_cpu(study).repetitions_s, 8 * (kRowSeconds + kRead))
      << "each process warms up";
  study.arms[0].backend = "torch";
  EXPECT_DOUBLE_EQ(on_cpu(study).starting_s, 4 * backend_traits("torch").costs->gpu_start)
      << "it imports torch";
}

TEST(Estimate, StartsDifferByWhatTheyDo) {
  StudyArm arm = one_cell(Phase::kPrefill, 10, 8).arms[0];
  const auto start = [&](std::optional<double> bytes) { return start_seconds(arm, bytes); };
  EXPECT_LT(*start(1e6), 0.02) << "8 ms were measured";
  EXPECT_FALSE(start(std::nullopt));
  const double maps = *start(1e9);
  arm.mode = "compiled";
  const double packs = *start(1e9);
  EXPECT_GT(packs, 3 * maps);
  arm.options = {{"kernel_cache", false}};
  EXPECT_GT(*start(1e9), packs + 1) << "it compiles them anew";
  arm.options = {{"device", "cuda"}};
  EXPECT_EQ(start(std::nullopt), backend_traits("native").costs->gpu_start);
}

TEST(Estimate, ParityAsksForTheMostTokensOfEachPrompt) {
  Study study = one_cell(Phase::kKvDecode, 10, 8);
  EXPECT_DOUBLE_EQ(on_cpu(study).parity_s, 9 * kRead);
  study.token_lengths = {2, 8};
  study.scenarios[0].prompt_tokens = {10, 10};
  EXPECT_DOUBLE_EQ(on_cpu(study).parity_s, 2 * 9 * kRead);
  study.processes = 4;
  EXPECT_DOUBLE_EQ(on_cpu(study).parity_s, 2 * 9 * kRead) << "once, however many processes";
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
  EXPECT_DOUBLE_EQ(on_gpu(prefill, "eager").repetitions_s,
                   5 * 10 * backend_traits("torch").costs->gpu_eager_layer);
  EXPECT_DOUBLE_EQ(on_gpu(decode, "eager").repetitions_s,
                   5 * 9 * 10 * backend_traits("torch").costs->gpu_eager_layer);
  EXPECT_DOUBLE_EQ(on_gpu(decode, "default").repetitions_s,
                   5 * 9 * 10 * backend_traits("torch").costs->gpu_compiled_layer);
  EXPECT_DOUBLE_EQ(on_gpu(decode, "manual-cudagraph").repetitions_s,
                   5 * 10 *
                       (backend_traits("torch").costs->gpu_eager_layer +
                        8 * backend_traits("torch").costs->gpu_graphed_layer));
  EXPECT_DOUBLE_EQ(on_gpu(decode, "eager", {}, 100e9).repetitions_s, 5 * 9 * 0.1);
  EXPECT_DOUBLE_EQ(on_gpu(one_cell(Phase::kPrefill, 2560, 8), "eager", {}, 1e9).repetitions_s,
                   5 * 0.01)
      << "ten reads' worth of tokens";
}

TEST(Estimate, OnAGpuEveryGraphIsCompiledForTheCellAndForParityBeforeIt) {
  const double graph = 10 * backend_traits("torch").costs->gpu_compile_layer;
  const Study decode = one_cell(Phase::kKvDecode, 10, 8);
  EXPECT_DOUBLE_EQ(on_gpu(one_cell(Phase::kPrefill, 10, 8), "default").preparing_s, graph);
  EXPECT_DOUBLE_EQ(on_gpu(decode, "default").preparing_s, 2 * graph);
  const double passes = 9 * 10 * backend_traits("torch").costs->gpu_compiled_layer;
  EXPECT_DOUBLE_EQ(on_gpu(decode, "default").parity_s, passes);
  EXPECT_DOUBLE_EQ(on_gpu(decode, "default", {}, 1e9, ParityTime::kBefore).parity_s,
                   2 * graph + passes);
  EXPECT_DOUBLE_EQ(on_gpu(one_cell(Phase::kKvDecode, 10, 512), "eager").parity_s,
                   513 * 10 * backend_traits("torch").costs->gpu_eager_layer)
      << "all that is generated is compared";
  EXPECT_DOUBLE_EQ(on_gpu(one_cell(Phase::kPrefill, 10, 8), "default").parity_s,
                   10 * backend_traits("torch").costs->gpu_compiled_layer)
      << "where no phase generates, lengths say nothing";
  EXPECT_DOUBLE_EQ(on_gpu(decode, "default", {{"compile_phases", "decode"}}).preparing_s, graph);
  EXPECT_DOUBLE_EQ(on_gpu(decode, "default").starting_s,
                   backend_traits("torch").costs->gpu_start +
                       10 * backend_traits("torch").costs->gpu_explain_layer);
  EXPECT_DOUBLE_EQ(on_gpu(decode, "default", {{"explain", false}}).starting_s,
                   backend_traits("torch").costs->gpu_start);
  EXPECT_DOUBLE_EQ(on_gpu(decode, "default", {{"torch_backend", "aot_eager"}}).preparing_s, 0);
  EXPECT_DOUBLE_EQ(on_gpu(decode, "eager").preparing_s, 0);
  EXPECT_DOUBLE_EQ(on_gpu(decode, "eager").starting_s, backend_traits("torch").costs->gpu_start);
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
  EXPECT_DOUBLE_EQ(estimate("eager").repetitions_s,
                   5 * 9 * 10 * backend_traits("native").costs->gpu_eager_layer);
  EXPECT_DOUBLE_EQ(estimate("eager").preparing_s, 0);
  EXPECT_DOUBLE_EQ(estimate("compiled").preparing_s,
                   2 * backend_traits("native").costs->gpu_compile);
  EXPECT_DOUBLE_EQ(estimate("compiled").starting_s, backend_traits("native").costs->gpu_start);
}

TEST(Estimate, OnAGpuAGrowingCacheTakesMoreGraphs) {
  const auto graphs = [](int64_t new_tokens, const std::string& dynamic, Json options) {
    Study study = one_cell(Phase::kKvDecode, 10, new_tokens);
    study.arms[0].cache = "dynamic";
    study.arms[0].dynamic = dynamic;
    return std::round(on_gpu(study, "default", std::move(options)).preparing_s /
                      (10 * backend_traits("torch").costs->gpu_compile_layer));
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
  EXPECT_DOUBLE_EQ(on_gpu(study, "default").preparing_s,
                   2 * 10 * backend_traits("torch").costs->gpu_compile_layer);
  study.token_lengths = {4, 8};
  EXPECT_DOUBLE_EQ(on_gpu(study, "default").preparing_s,
                   4 * 10 * backend_traits("torch").costs->gpu_compile_layer);
}

TEST(Estimate, OnAGpuEachProcessStartsExplainsAndCompilesAnew) {
  Study study = one_cell(Phase::kKvDecode, 10, 8);
  const double graph = 10 * backend_traits("torch").costs->gpu_compile_layer;
  const double start = backend_traits("torch").costs->gpu_start +
                       10 * backend_traits("torch").costs->gpu_explain_layer;
  study.processes = 3;
  EXPECT_DOUBLE_EQ(on_gpu(study, "default").preparing_s, 3 * 2 * graph);
  EXPECT_DOUBLE_EQ(on_gpu(study, "default").starting_s, 3 * start);
  EXPECT_DOUBLE_EQ(on_gpu(study, "default", {}, 1e9, ParityTime::kBefore).starting_s,
                   3 * start + backend_traits("torch").costs->gpu_start);
  const double asked = on_gpu(study, "default").parity_s;
  study.processes = 1;
  EXPECT_DOUBLE_EQ(on_gpu(study, "default").parity_s, asked) << "parity is asked once";
}

TEST(Estimate, OnAProcessorTorchCompilesACellAnewInEachProcess) {
  Study study = one_cell(Phase::kPrefill, 10, 0);
  study.arms[0].backend = "torch";
  study.arms[0].options = {{"device", "cpu"}};
  study.processes = 2;
  EXPECT_EQ(on_cpu(study).preparing_s, 0) << "eager";
  study.arms[0].mode = "default";
  EXPECT_DOUBLE_EQ(on_cpu(study).preparing_s, 2 * backend_traits("torch").costs->processor_compile);
  study.arms[0].backend = "native";
  study.arms[0].mode = "compiled";
  EXPECT_EQ(on_cpu(study).preparing_s, 0) << "its kernels are kept";
}

TEST(Estimate, ModelSizesAreThoseOfTheirFiles) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / "assay_model_size_test";
  std::filesystem::remove_all(folder);
  EXPECT_FALSE(model_size(folder));
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "a.safetensors") << std::string(10'000, 'x');
  const auto size_with = [&](const std::string& config) {
    std::ofstream(folder / "config.json") << config;
    return model_size(folder).value_or(ModelSize{.vocabulary_bytes = -1});
  };
  EXPECT_EQ(model_size(folder)->bytes, 10'000);
  EXPECT_EQ(model_size(folder)->vocabulary_bytes, 0) << "no config";
  const ModelSize gpt = size_with(R"({"n_layer": 3, "n_embd": 10, "vocab_size": 50})");
  EXPECT_EQ(gpt.layers, 3);
  EXPECT_EQ(gpt.vocabulary_bytes, 4 * 10 * 50);
  const ModelSize llama = size_with(
      R"({"num_hidden_layers": 2, "hidden_size": 10, "vocab_size": 50, "torch_dtype": "bfloat16",
          "tie_word_embeddings": false})");
  EXPECT_EQ(llama.layers, 2);
  EXPECT_EQ(llama.vocabulary_bytes, 2 * 2 * 10 * 50);
  for (const char* config : {"[]", "{", R"({"vocab_size": -5, "n_embd": 3, "n_layer": -1})",
                             R"({"vocab_size": "many", "hidden_size": {}, "n_layer": 1.5})"}) {
    const ModelSize odd = size_with(config);
    EXPECT_EQ(odd.bytes, 10'000) << config;
    EXPECT_EQ(odd.vocabulary_bytes, 0) << config;
    EXPECT_FALSE(odd.layers) << config;
  }
  EXPECT_EQ(size_with(R"({"vocab_size": 1e300, "n_embd": 1e300})").vocabulary_bytes, 10'000);
  std::filesystem::remove_all(folder);
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
