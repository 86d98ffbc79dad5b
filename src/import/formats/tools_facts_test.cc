// Statements of the tools' files beside their times: units, outcomes, warm-ups, identities, and
// those that tell arms apart.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/files/files.h"
#include "base/files/temporary_folder.h"
#include "import/import_fixture.h"

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> arms_in(const Result<ImportedRows>& made) {
  return made ? made->arms : std::vector<std::string>{made.error().message};
}

TEST(Hyperfine, ARunThatFailedStaysACrashWhateverItsTime) {
  const auto made = rows_of_text(
      R"({"results": [{"command": "x", "mean": 1, "times": [-1, 1], "exit_codes": [3, 0]}]})");
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_THAT(statuses_of(*made), ElementsAre("crash exit 3", "ok"));
}

std::string pytest_file(const std::string& commit, const std::string& benchmark) {
  return R"({"machine_info": {"cpu": {"brand_raw": "Example CPU"}}, "commit_info": )" + commit +
         R"(, "datetime": "2026-11-25T09:55:10.5", "benchmarks": [{"name": "t", )" + benchmark +
         "}]}";
}

TEST(PytestBenchmark, ACommitIsOneOnlyIfThereIsOneAndSaysThatItIsDirty) {
  const std::string stats = R"("stats": {"mean": 1, "data": [1]})";
  const auto sha = [&](const std::string& commit) {
    const auto imported = import_text(pytest_file(commit, stats));
    return imported ? imported->runs[0].facts.text(ImportField::kCodeSha)
                    : imported.error().message;
  };
  EXPECT_EQ(sha(R"({"id": "abc", "dirty": false})"), "abc");
  EXPECT_EQ(sha(R"({"id": "abc", "dirty": true})"), "abc-dirty");
  EXPECT_EQ(sha(R"({"id": "unversioned", "dirty": false})"), "");
}

TEST(PytestBenchmark, WarmUpsMayBeANumberAndParametersAreFields) {
  const auto made = [](const std::string& options) {
    return rows_of_text(pytest_file(
        "{}", R"("params": {"batch": 2, "x": 1}, "stats": {"mean": 1, "data": [1, 2]})" + options));
  };
  const auto cold = made(R"(, "options": {"warmup": 0})");
  ASSERT_TRUE(cold) << cold.error().message;
  EXPECT_EQ(cold->cold, 1);
  EXPECT_EQ(cold->rows[0].batch, 2);
  EXPECT_EQ(cold->rows[0].started_at_ns, 1'795'600'510'500'000'000) << "half a second counts";
  EXPECT_EQ(made(R"(, "options": {"warmup": 3})")->cold, 0);
  EXPECT_EQ(made("")->cold, 1);
}

TEST(PytestBenchmark, RoundsThatAreNoListAreRefusedRatherThanTheMeanTaken) {
  for (const char* data : {"{}", "5", R"("1")"}) {
    EXPECT_THAT(import_refusal(
                    pytest_file("{}", fmt::format(R"("stats": {{"mean": 1, "data": {}}})", data))),
                HasSubstr("expected a list of numbers at \"data\""));
  }
  EXPECT_EQ(rows_of_text(pytest_file("{}", R"("stats": {"mean": 1, "data": []})"))->means, 1);
}

std::string vllm_file(const std::string& more) {
  return R"({"backend": "vllm", "model_id": "m", "request_rate": 4, "max_concurrency": 2,)"
         R"( "duration": 2.0, "completed": 1, "request_throughput": 1.0, "input_lens": [10, 20],)"
         R"( "output_lens": [3, 3], "ttfts": [0.5, 0.5], "itls": [[0.25, 0.25], [0.25, 0.25]])" +
         more + "}";
}

TEST(VllmServe, LatenciesOfTheFileAreTakenBeforeTheSumOfItsParts) {
  const auto made = rows_of_text(vllm_file(R"(, "latencies": [1.5, 2])"));
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(*made->rows[0].latency_ms, 1500);
  EXPECT_EQ(*rows_of_text(vllm_file(""))->rows[0].latency_ms, 1000);
  EXPECT_EQ(made->rows[0].prompt_tokens, 10);
  EXPECT_EQ(made->rows[1].prompt_tokens, 20);
  EXPECT_EQ(made->rows[0].scenario, "rate-4-c2");
}

TEST(VllmServe, MetadataStatesTheServer) {
  const auto imported = import_text(vllm_file(
      R"(, "label": "server", "dtype": "bfloat16", "quantization": "fp8", "cache": "static",)"
      R"( "compile_mode": "default", "dynamic": "true", "device": "Example GPU",)"
      R"( "code_generator": "triton 3.6", "framework_build": "vllm 0.19", "code_sha": "abc",)"
      R"( "new_tokens": 3)"));
  ASSERT_TRUE(imported) << imported.error().message;
  const RunFacts& facts = imported->runs[0].facts;
  for (const auto& [field, text] :
       {std::pair<ImportField, const char*>{ImportField::kArm, "server"},
        {ImportField::kDtype, "bf16"},
        {ImportField::kQuantization, "fp8"},
        {ImportField::kCache, "static"},
        {ImportField::kCompileMode, "default"},
        {ImportField::kDynamic, "true"},
        {ImportField::kDevice, "Example GPU"},
        {ImportField::kCodeGenerator, "triton 3.6"},
        {ImportField::kFrameworkBuild, "vllm 0.19"},
        {ImportField::kCodeSha, "abc"},
        {ImportField::kNewTokens, "3"}}) {
    EXPECT_EQ(facts.text(field), text) << import_field_name(field);
  }
}

// A request with its metrics, which began at that nanosecond.
std::string aiperf_request(int64_t start, const std::string& phase, const std::string& metrics,
                           const std::string& error = "null") {
  return fmt::format(
      R"({{"metadata": {{"request_start_ns": {}, "benchmark_phase": "{}"}}, "metrics": {{{}}}, "error": {}}})"
      "\n",
      start, phase, metrics, error);
}

std::string aiperf_latency(double value, const std::string& unit) {
  return fmt::format(R"("request_latency": {{"value": {}, "unit": "{}"}})", value, unit);
}

TEST(Aiperf, EachUnitOfTimeIsConverted) {
  for (const auto& [unit, ms] : {std::pair<const char*, double>{"ns", 5e-6},
                                 {"us", 5e-3},
                                 {"ms", 5},
                                 {"s", 5e3},
                                 {"sec", 5e3}}) {
    const auto made = rows_of_text(aiperf_request(1, "profiling", aiperf_latency(5, unit)));
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_DOUBLE_EQ(*made->rows[0].latency_ms, ms) << unit;
  }
}

TEST(Aiperf, WarmUpsAreColdAndThenNoOtherRequestIs) {
  std::string text;
  for (int i = 1; i <= 4; ++i) {
    text += aiperf_request(i, i <= 2 ? "warmup" : "profiling", aiperf_latency(5, "ms"));
  }
  const auto made = rows_of_text(text);
  ASSERT_TRUE(made) << made.error().message;
  std::vector<bool> cold;
  for (const Row& row : made->rows) cold.push_back(row.cold);
  EXPECT_THAT(cold, ElementsAre(true, true, false, false));
  // If the first request to be sent wasn't a warm-up, later warm-ups warmed the server all the
  // same.
  const auto late = rows_of_text(aiperf_request(1, "profiling", aiperf_latency(5, "ms")) +
                                 aiperf_request(2, "warmup", aiperf_latency(5, "ms")));
  EXPECT_FALSE(late->rows[0].cold);
  EXPECT_TRUE(late->rows[1].cold);
}

TEST(Aiperf, TheServersCountOfTokensComesFirstAndLossesHaveTheirPrompt) {
  const auto made = rows_of_text(
      aiperf_request(
          1, "profiling",
          aiperf_latency(5, "ms") +
              R"(, "usage_completion_tokens": {"value": 8}, "output_token_count": {"value": 7},)"
              R"( "output_sequence_length": {"value": 9}, "input_sequence_length": {"value": 12})") +
      aiperf_request(2, "profiling", R"("error_isl": {"value": 30})",
                     R"({"code": 504, "type": "TimeoutError", "message": "late"})"));
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(*made->rows[0].tokens, 8);
  EXPECT_EQ(made->rows[0].prompt_tokens, 12);
  EXPECT_THAT(statuses_of(*made), ElementsAre("ok", "timeout TimeoutError"));
  EXPECT_EQ(made->rows[1].prompt_tokens, 30);
}

TEST(Aiperf, WhatWasAskedForIsAFixedLengthOfTheConfiguration) {
  const auto summary = [](const std::string& input) {
    return rows_of_text(R"({"request_latency": {"unit": "ms", "avg": 5}, "input_config": {)" +
                        input + "}}");
  };
  const auto asked = [&](const std::string& length) {
    const auto made = summary(R"("datasets": [{"prompts": {"osl": {)" + length + "}}}]");
    return made && !made->unknown.at("aiperf").contains("new_tokens") ? made->rows[0].new_tokens
                                                                      : -1;
  };
  EXPECT_EQ(asked(R"("mean": 8)"), 8);
  EXPECT_EQ(asked(R"("mean": 8, "stddev": 0)"), 8);
  EXPECT_EQ(asked(R"("mean": 8, "stddev": 2)"), -1) << "a mean of what was asked";
  EXPECT_EQ(asked(R"("mean": 8.5)"), -1);
  const auto phases = summary(
      R"("phases": [{"kind": "profiling", "concurrency": 4}, {"kind": "warmup", "concurrency": 1}])");
  ASSERT_TRUE(phases) << phases.error().message;
  EXPECT_EQ(phases->rows[0].scenario, "c4") << "the load of what was measured";
}

std::string optimum_file(const std::string& backend, const std::string& scenario = "",
                         const std::string& unit = "s") {
  return R"({"config": {"backend": {"name": "pytorch", )" + backend + R"(}, "scenario": {)" +
         scenario +
         R"(}, "launcher": {}, "environment": {"cpu": "Example CPU", "gpu": ["Example GPU"]}},)"
         R"( "report": {"prefill": {"latency": {"unit": ")" +
         unit + R"(", "values": [0.5, 0.25]}, "throughput": null}}})";
}

std::string optimum_fact(const std::string& backend, ImportField field) {
  const auto imported = import_text(optimum_file(backend));
  return imported ? imported->runs[0].facts.text(field) : imported.error().message;
}

TEST(Optimum, UnitsAndWarmUps) {
  const std::string cpu = R"("device": "cpu")";
  const auto ms = rows_of_text(optimum_file(cpu, "", "ms"));
  ASSERT_TRUE(ms) << ms.error().message;
  EXPECT_EQ(*ms->rows[0].latency_ms, 0.5);
  EXPECT_EQ(ms->cold, 1) << "no warm-up is stated";
  EXPECT_EQ(*rows_of_text(optimum_file(cpu))->rows[0].latency_ms, 500);
  EXPECT_EQ(rows_of_text(optimum_file(cpu, R"("warmup_runs": 0)"))->cold, 1);
  EXPECT_EQ(rows_of_text(optimum_file(cpu, R"("warmup_runs": 2)"))->cold, 0);
  EXPECT_THAT(import_refusal(optimum_file(cpu, "", "h")), HasSubstr("expected the unit s or ms"));
}

TEST(Optimum, TheConfigurationIsStatedAndNothingBeyondIt) {
  EXPECT_EQ(optimum_fact(R"("device": "cpu")", ImportField::kDevice), "Example CPU");
  EXPECT_EQ(optimum_fact(R"("device": "cuda")", ImportField::kDevice), "Example GPU");
  EXPECT_EQ(optimum_fact(R"("cache_implementation": "static")", ImportField::kCache), "static");
  EXPECT_EQ(optimum_fact(R"("cache_implementation": null)", ImportField::kCache), "");
  EXPECT_EQ(optimum_fact(R"("torch_dtype": "auto")", ImportField::kDtype), "");
  EXPECT_EQ(optimum_fact(R"("torch_dtype": "bfloat16")", ImportField::kDtype), "bf16");
  EXPECT_EQ(optimum_fact(R"("quantization_scheme": "bnb")", ImportField::kQuantization), "bnb");
  EXPECT_EQ(optimum_fact(R"("quantization_scheme": null)", ImportField::kQuantization), "none");
  EXPECT_EQ(optimum_fact(R"("x": null)", ImportField::kQuantization), "");
  EXPECT_EQ(optimum_fact(R"("torch_compile": true)", ImportField::kCompileMode), "default");
  EXPECT_EQ(optimum_fact(R"("x": null)", ImportField::kCompileMode), "");
}

TEST(Optimum, SettingsTellArmsApart) {
  std::vector<SourceText> sources;
  for (const char* backend :
       {R"("attn_implementation": "sdpa")", R"("attn_implementation": "eager")"}) {
    sources.push_back(parse_source(optimum_file(backend), "file").value());
  }
  const auto imported = import_sources(sources, std::nullopt, nullptr);
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_THAT(arms_in(make_rows(*imported, FirstSamples::kByFile)),
              ElementsAre("pytorch-attn-sdpa", "pytorch-attn-eager"));
}

std::string nvbench_file(int device, const std::string& summaries) {
  return fmt::format(
      R"({{"devices": [{{"id": 0, "name": "GPU zero"}}, {{"id": 1, "name": "GPU one"}}],)"
      R"( "benchmarks": [{{"name": "copy", "states": [{{"name": "s", "device": {}, "is_skipped": false,)"
      R"( "summaries": [{}]}}]}}]}})",
      device, summaries);
}

constexpr const char* kGpuMean =
    R"({"tag": "nv/cold/time/gpu/mean", "data": [{"name": "value", "value": "0.002"}]})";

TEST(Nvbench, AStateHasTheDeviceThatItNames) {
  for (const auto& [id, name] :
       {std::pair<int, const char*>{0, "GPU zero"}, {1, "GPU one"}, {7, ""}}) {
    const auto imported = import_text(nvbench_file(id, kGpuMean));
    ASSERT_TRUE(imported) << imported.error().message;
    EXPECT_EQ(imported->runs[0].facts.text(ImportField::kDevice), name);
  }
}

TEST(Nvbench, SamplesAreSecondsAndMissingOnesAreTold) {
  const TemporaryFolder temporary = TemporaryFolder::make("assay-nvbench-").value();
  const std::filesystem::path& folder = temporary.path();
  const float times[] = {0.5F, 0.25F};
  ASSERT_TRUE(write_file(folder / "0.bin", {reinterpret_cast<const char*>(times), sizeof(times)}));
  const auto with = [&](const std::string& name) {
    const std::string samples =
        R"({"hint": "file/sample_times", "data": [{"name": "filename", "value": ")" + name +
        R"("}, {"name": "size", "value": "2"}]}, )";
    const auto source =
        parse_source(nvbench_file(0, samples + kGpuMean), (folder / "r.json").string());
    return import_sources(std::span(&*source, 1), std::nullopt, nullptr).value();
  };
  const Imported there = with("0.bin");
  EXPECT_EQ(*there.runs[0].samples[1].latency_ms, 250);
  EXPECT_THAT(there.notes, IsEmpty());
  const Imported gone = with("1.bin");
  EXPECT_EQ(*gone.runs[0].samples[0].latency_ms, 2);
  EXPECT_THAT(gone.notes, ElementsAre(HasSubstr("the samples of 1 state are missing beside it")));
}

std::string llama_file(const std::string& more, const std::string& backends = "CPU") {
  return R"({"build_commit": "abc1234", "build_number": 5000, "cpu_info": "Example CPU",)"
         R"( "gpu_info": "Example GPU", "backends": ")" +
         backends + R"(", "model_filename": "m.gguf", "model_type": "llama 1B all F32",)" +
         R"( "n_prompt": 0, "n_gen": 8, "avg_ns": 5, "samples_ns": [5000000])" + more + "}";
}

TEST(LlamaBench, TheDeviceIsTheOneOfTheBackend) {
  const auto fact = [](const std::string& text, ImportField field) {
    const auto imported = import_text(text);
    return imported ? imported->runs[0].facts.text(field) : imported.error().message;
  };
  EXPECT_EQ(fact(llama_file("", "CPU"), ImportField::kDevice), "Example CPU");
  EXPECT_EQ(fact(llama_file("", "CUDA"), ImportField::kDevice), "Example GPU");
  EXPECT_EQ(fact(llama_file(""), ImportField::kCodeSha), "abc1234");
  EXPECT_EQ(fact(llama_file(""), ImportField::kDtype), "fp32") << "\"all F32\"";
  std::string unknown = llama_file("");
  unknown.replace(unknown.find("abc1234"), 7, "unknown");
  EXPECT_EQ(fact(unknown, ImportField::kCodeSha), "");
  EXPECT_EQ(fact(unknown, ImportField::kFrameworkBuild), "");
}

TEST(LlamaBench, DepthFlashAttentionAndTheModelsSizeAreKept) {
  std::vector<SourceText> sources;
  for (const char* flash : {"0", "1"}) {
    const std::string more =
        fmt::format(R"(, "n_depth": 64, "model_size": 1000, "flash_attn": {})", flash);
    sources.push_back(parse_source(llama_file(more), "file").value());
  }
  const auto imported = import_sources(sources, std::nullopt, nullptr);
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_EQ(imported->runs[0].weight_bytes, 1000);
  const auto made = make_rows(*imported, FirstSamples::kByFile);
  EXPECT_THAT(arms_in(made), ElementsAre("CPU-fa-0", "CPU-fa-1"));
  EXPECT_EQ(made->rows[0].prompt_tokens, 64) << "tokens behind 64 others";
  EXPECT_EQ(made->rows[0].scenario, "tg8@d64");
}

TEST(Import, ARunWithoutASampleHasNoRowsAndIsTold) {
  const auto made = rows_of_text(
      R"({"results": [{"command": "a", "mean": 1, "times": [1]}, {"command": "b", "mean": 1, "times": []}]})");
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_THAT(made->arms, ElementsAre("a"));
  EXPECT_THAT(made->empty_runs, ElementsAre(testing::Pair("b", 1)));
  EXPECT_THAT(import_refusal(R"({"results": [{"command": "b", "mean": 1, "times": []}]})"),
              HasSubstr("expected samples, found none"));
}

TEST(Import, ATimeThatIsNoNumberInJsonIsAFalseSuccess) {
  const auto made =
      rows_of_text(R"({"results": [{"command": "a", "mean": NaN, "times": [1, NaN, Infinity]}]})");
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_THAT(statuses_of(*made), ElementsAre("ok", "false_success impossible_latency",
                                              "false_success impossible_latency"));
}

}  // namespace
}  // namespace assay
