// The tools that aren't llama-bench: their files' statements, and files that are none of theirs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/files/files.h"
#include "import/import_fixture.h"

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Hyperfine, ExitCodesAreOutcomesAndParametersAreFields) {
  const auto made =
      rows_of_text(R"({"results": [{"command": "run it", "mean": 1.0, "times": [0.5, 1.5, 1.0],)"
                   R"( "exit_codes": [0, 3, null], "parameters": {"batch": "2", "what": "x"}}]})");
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_THAT(statuses_of(*made), ElementsAre("ok", "crash exit 3", "crash signal"));
  EXPECT_EQ(*made->rows[0].latency_ms, 500);
  EXPECT_EQ(made->rows[0].batch, 2);
  EXPECT_EQ(made->rows[0].arm, "run it");
  EXPECT_EQ(made->rows[0].phase, Phase::kE2eKv);
  EXPECT_THAT(made->unknown.at("run it"), testing::IsSupersetOf({"phase", "model", "device"}));
}

TEST(Hyperfine, EachRunIsAProcessAndAWordInACommandIsNoCompiler) {
  const auto made =
      rows_of_text(R"({"results": [{"command": "make compile", "mean": 1, "times": [1, 2, 3]},)"
                   R"( {"command": "make again", "mean": 1, "times": [1, 2, 3]}]})");
  ASSERT_TRUE(made) << made.error().message;
  for (size_t i = 0; i < made->rows.size(); ++i) {
    EXPECT_EQ(made->rows[i].process, static_cast<int64_t>(i % 3));
    EXPECT_EQ(made->rows[i].cold, i % 3 == 0) << "the first warms the page cache";
  }
  EXPECT_EQ(made->cells[0].compile_mode, "");
  EXPECT_FALSE(made->cells[0].named_compiled);
}

TEST(Hyperfine, EachTimeHasItsExitCodeOrNoneHas) {
  const auto refusal = [](const std::string& codes) {
    return import_refusal(
        fmt::format(R"({{"results": [{{"command": "x", "mean": 1, "times": [1, 2]{}}}]}})", codes));
  };
  EXPECT_EQ(refusal(""), "read");
  EXPECT_EQ(refusal(R"(, "exit_codes": [0, 0])"), "read");
  for (const char* codes : {"[0]", "[]", "[0, 0, 0]"}) {
    EXPECT_THAT(refusal(fmt::format(R"(, "exit_codes": {})", codes)),
                HasSubstr("expected 2 entries at \"exit_codes\" as at \"times\", found"));
  }
}

TEST(Hyperfine, ACommandOfSeveralLinesIsEscaped) {
  const auto made =
      rows_of_text("{\"results\": [{\"command\": \"a\\nb\\u001b[31m\", \"mean\": 1}]}");
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->rows[0].arm, "a\\nb\\x1b[31m");
  EXPECT_EQ(made->means, 1);
}

TEST(PytestBenchmark, RoundsGroupsAndExtraInfo) {
  const auto made = rows_of_text(
      R"({"machine_info": {"node": "secret-host", "cpu": {"brand_raw": "Example CPU"}},)"
      R"( "commit_info": {"id": "abc", "dirty": true}, "datetime": "2026-11-25T09:55:10+01:00",)"
      R"( "version": "5.2.3", "benchmarks": [{"group": "decode", "name": "test_a", "params": null,)"
      R"( "extra_info": {"phase": "kv_decode", "new_tokens": 4, "note": [1]},)"
      R"( "options": {"warmup": true},)"
      R"( "stats": {"mean": 0.25, "iterations": 1, "data": [0.5, 0.25]}},)"
      R"({"group": "decode", "name": "test_b", "stats": {"mean": 0.25, "iterations": 5}}]})");
  ASSERT_TRUE(made) << made.error().message;
  ASSERT_EQ(made->rows.size(), 3U);
  EXPECT_EQ(made->rows[0].phase, Phase::kKvDecode);
  EXPECT_EQ(made->rows[0].scenario, "decode");
  EXPECT_EQ(*made->rows[1].latency_ms, 250);
  EXPECT_EQ(made->rows[0].started_at_ns, 1'795'596'910'000'000'000);
  EXPECT_EQ(made->cold, 0) << "the file says that it warmed up";
  EXPECT_EQ(made->means, 1);
}

TEST(PytestBenchmark, TheHostsNameIsNotKept) {
  const auto imported =
      import_text(R"({"machine_info": {"node": "secret-host", "system": "Linux"}, "benchmarks":)"
                  R"( [{"name": "t", "stats": {"mean": 1, "iterations": 9, "data": [1]}}]})");
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_EQ(imported->machine.dump().find("secret"), std::string::npos);
  EXPECT_EQ(imported->machine["system"], "Linux");
  EXPECT_THAT(imported->notes, ElementsAre(HasSubstr("the mean of a round's iterations")));
}

constexpr const char* kVllmHead =
    R"("date": "20261125-095510", "backend": "vllm", "label": null, "model_id": "m",)"
    R"( "request_rate": "inf", "max_concurrency": 4, "duration": 2.0, "completed": 2,)"
    R"( "request_throughput": 1.0, "total_input_tokens": 20, "total_output_tokens": 6)";

TEST(VllmServe, RequestsWithTheirErrors) {
  const auto made = rows_of_text(
      "{" + std::string(kVllmHead) +
      R"(, "input_lens": [10, 10, 10, 10], "output_lens": [3, 3, 0, 0], "ttfts": [0.5, 0.25, 0.1, 0],)"
      R"( "itls": [[0.25, 0.25], [0.125, 0.125], [], []],)"
      R"( "errors": ["", "", "", "Traceback:\n  x\naiohttp.client.ServerTimeoutError: late"]})");
  ASSERT_TRUE(made) << made.error().message;
  std::vector<std::string> whole = statuses_of(*made);
  whole.resize(4);  // the other phases stand behind
  EXPECT_THAT(
      whole, ElementsAre("ok", "ok", "false_success too_few_tokens", "timeout ServerTimeoutError"));
  EXPECT_EQ(*made->rows[0].latency_ms, 1000);
  EXPECT_EQ(*made->rows[0].ttft_ms, 500);
  EXPECT_EQ(made->rows[0].scenario, "rate-inf-c4");
  EXPECT_EQ(made->rows[0].new_tokens, 3);
  EXPECT_TRUE(made->rows[0].cold);
  EXPECT_FALSE(made->rows[1].cold);
  EXPECT_TRUE(made->unknown.at("vllm").contains("new_tokens"));
}

TEST(VllmServe, WithoutRequestsTheMeanWhereThereIsOne) {
  const std::string head = "{" + std::string(kVllmHead);
  EXPECT_THAT(import_refusal(head + "}"), HasSubstr("--save-detailed"));
  const auto made = rows_of_text(head + R"(, "mean_e2el_ms": 750.0})");
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->means, 1);
  EXPECT_EQ(*made->rows[0].latency_ms, 750);
  EXPECT_EQ(*made->rows[0].tokens, 3);
}

TEST(VllmServe, ListsOfUnequalLengthsAreRefused) {
  EXPECT_THAT(import_refusal("{" + std::string(kVllmHead) +
                             R"(, "input_lens": [1], "output_lens": [1, 2], "ttfts": [1, 2],)"
                             R"( "itls": [[], []]})"),
              HasSubstr("expected 2 entries at \"input_lens\""));
}

std::string aiperf_line(int64_t start, double latency, const std::string& phase) {
  return fmt::format(
      R"({{"metadata": {{"request_start_ns": {}, "conversation_id": "c", "benchmark_phase": "{}"}},)"
      R"( "metrics": {{"request_latency": {{"value": {}, "unit": "ms"}},)"
      R"( "time_to_first_token": {{"value": 1.5, "unit": "ms"}},)"
      R"( "output_sequence_length": {{"value": 9, "unit": "tokens"}}}}, "error": null}})",
      start, phase, latency);
}

TEST(Aiperf, RequestsInTheOrderInWhichTheyWereSent) {
  const auto made = rows_of_text(
      aiperf_line(300, 5, "profiling") + "\n" + aiperf_line(100, 7, "profiling") + "\n" +
      R"({"metadata": {"request_start_ns": 200}, "metrics": {}, "error": {"code": 499, "type": "RequestCancellationError"}})"
      "\n");
  ASSERT_TRUE(made) << made.error().message;
  std::vector<std::string> whole = statuses_of(*made);
  whole.resize(3);  // the other phases stand behind
  EXPECT_THAT(whole, ElementsAre("ok", "error RequestCancellationError", "ok"));
  EXPECT_EQ(*made->rows[0].latency_ms, 7);
  EXPECT_TRUE(made->rows[0].cold);
  EXPECT_EQ(*made->rows[2].ttft_ms, 1.5);
  EXPECT_EQ(made->rows[0].new_tokens, 9);
}

TEST(Aiperf, WarmUpsOfTheFileAreCold) {
  const auto made =
      rows_of_text(aiperf_line(1, 9, "warmup") + "\n" + aiperf_line(2, 5, "profiling") + "\n");
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_TRUE(made->rows[0].cold);
  EXPECT_FALSE(made->rows[1].cold);
}

TEST(Aiperf, TheSummaryIsAMean) {
  const auto made = rows_of_text(
      R"({"request_latency": {"unit": "ms", "avg": 12.5}, "output_sequence_length": {"unit": "tokens", "avg": 8.0},)"
      R"( "input_config": {"endpoint": {"model_names": ["m"]}, "loadgen": {"concurrency": 4}}})");
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->means, 1);
  EXPECT_EQ(made->rows[0].model, "m");
  EXPECT_EQ(made->rows[0].scenario, "c4");
  EXPECT_EQ(*made->rows[0].latency_ms, 12.5);
}

TEST(Aiperf, ATimeOfAnotherUnitIsRefused) {
  EXPECT_THAT(import_refusal(R"({"request_latency": {"unit": "fortnights", "avg": 1}})"),
              HasSubstr("expected a unit of time at \"request_latency\", found \"fortnights\""));
}

std::string optimum_benchmark(const std::string& backend) {
  return R"({"config": {"backend": {"name": "pytorch", "version": "2.8.0", "model": "gpt2", "device": "cpu", )" +
         backend +
         R"(}, "scenario": {"warmup_runs": 10, "input_shapes": {"batch_size": 2, "sequence_length": 16},)"
         R"( "generate_kwargs": {"max_new_tokens": 8}}, "launcher": {},)"
         R"( "environment": {"cpu": " Example CPU", "transformers_version": "4.55.0"}},)"
         R"( "report": {"load_model": {"latency": {"unit": "s", "values": [9.0]}, "throughput": null},)"
         R"( "prefill": {"latency": {"unit": "s", "values": [0.5, 0.25]}, "throughput": null},)"
         R"( "decode": {"latency": {"unit": "s", "values": [1.5, 1.0]}, "throughput": null}}})";
}

TEST(Optimum, TargetsArePhasesAndTheConfigurationIsTheIdentity) {
  const auto made = rows_of_text(optimum_benchmark(
      R"("torch_dtype": "float16", "torch_compile": false, "quantization_scheme": null)"));
  ASSERT_TRUE(made) << made.error().message;
  ASSERT_EQ(made->rows.size(), 4U) << "loading the model is no sample";
  EXPECT_EQ(made->rows[0].phase, Phase::kPrefill);
  EXPECT_EQ(made->rows[0].batch, 2);
  EXPECT_EQ(made->rows[0].dtype, "fp16");
  EXPECT_EQ(made->rows[0].compile_mode, "eager");
  EXPECT_EQ(made->cold, 0) << "10 warm-ups came before";
  EXPECT_EQ(made->rows[2].phase, Phase::kKvDecode);
  EXPECT_EQ(made->rows[2].new_tokens, 7) << "the first of 8 comes from the prefill";
  EXPECT_EQ(made->rows[2].scenario, "prompt_16");
  EXPECT_EQ(made->cells[0].compiler.verdict, CompilerReal::kNotApplicable);
  EXPECT_FALSE(made->unknown.at("pytorch").contains("device"));
  EXPECT_TRUE(made->unknown.at("pytorch").contains("tokens"));
}

TEST(Optimum, TorchCompileIsUnproven) {
  const auto made = rows_of_text(optimum_benchmark(
      R"("torch_compile": true, "torch_compile_config": {"mode": "max-autotune", "dynamic": true})"));
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->rows[0].compile_mode, "max-autotune");
  EXPECT_EQ(made->rows[0].dynamic, "true");
  EXPECT_EQ(made->cells[0].compiler.verdict, CompilerReal::kUnproven);
}

TEST(Optimum, AReportAloneSaysLittle) {
  const auto made = rows_of_text(
      R"({"prefill": {"latency": {"unit": "s", "values": [0.5]}, "throughput": null, "memory": null}})");
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->rows[0].arm, "optimum");
  EXPECT_TRUE(made->unknown.at("optimum").contains("device"));
  EXPECT_THAT(import_refusal(R"({"backend": {}, "scenario": {}, "launcher": {}})"),
              HasSubstr("found only configurations"));
  EXPECT_THAT(import_refusal(R"({"load_model": {"latency": {"unit": "s", "values": [1]}}})"),
              HasSubstr("expected the latency of prefill"));
}

std::string nvbench_state(const std::string& summaries) {
  return R"({"meta": {"version": {"nvbench": {"string": "1.2.3"}}}, "devices": [{"id": 0, "name": "Example GPU"}],)"
         R"( "benchmarks": [{"name": "copy", "states": [{"name": "Device=0", "device": 0,)"
         R"( "axis_values": [{"name": "N", "type": "int64", "value": "256"}], "is_skipped": false,)"
         R"( "summaries": [)" +
         summaries +
         R"(]}, {"name": "Device=0", "device": 0, "axis_values": null, "is_skipped": true, "skip_reason": "too big"}]}]})";
}

std::string nvbench_datum(const std::string& key, const std::string& tag, const std::string& name,
                          const std::string& value) {
  return fmt::format(
      R"({{"{}": "{}", "data": [{{"name": "{}", "type": "float64", "value": "{}"}}]}})", key, tag,
      name, value);
}

TEST(Nvbench, AStateIsAMeanAndASkippedOneAnError) {
  const auto made = rows_of_text(
      nvbench_state(nvbench_datum("tag", "nv/cold/time/gpu/mean", "value", "0.002") + "," +
                    nvbench_datum("tag", "nv/cold/time/cpu/mean", "value", "0.003")));
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_THAT(statuses_of(*made), ElementsAre("ok", "error skipped"));
  EXPECT_EQ(*made->rows[0].latency_ms, 2) << "the GPU's time, as samples have it";
  EXPECT_EQ(*made->rows[0].device_ms, 2);
  EXPECT_EQ(made->rows[0].scenario, "N=256");
  EXPECT_EQ(made->rows[0].arm, "copy");
  EXPECT_THAT(import_refusal(nvbench_state("")), HasSubstr("expected the summary"));
}

TEST(Nvbench, SamplesLieBesideTheJsonAndNowhereElse) {
  std::string pattern = testing::TempDir() + "/assay-nvbench-XXXXXX";
  const std::filesystem::path folder = ::mkdtemp(pattern.data());
  std::filesystem::create_directory(folder / "r.json-bin");
  const float times[] = {0.5F, 0.25F};
  ASSERT_TRUE(write_file(folder / "r.json-bin/0.bin",
                         {reinterpret_cast<const char*>(times), sizeof(times)}));
  const auto samples = [&](const std::string& name, const std::string& size) {
    const std::string summary =
        R"({"hint": "file/sample_times", "data": [{"name": "filename", "value": ")" + name +
        R"("}, {"name": "size", "value": ")" + size + R"("}]})";
    const auto source =
        parse_source(nvbench_state(summary + "," +
                                   nvbench_datum("tag", "nv/cold/time/gpu/mean", "value", "0.002")),
                     (folder / "r.json").string());
    const auto imported = import_sources(std::span(&*source, 1), std::nullopt, nullptr);
    return imported
               ? fmt::format("{} {}", imported->runs[0].samples.size(), imported->runs[0].means)
               : imported.error().message;
  };
  EXPECT_EQ(samples("r.json-bin/0.bin", "2"), "2 false");
  EXPECT_EQ(samples("built/here/r.json-bin/0.bin", "2"), "2 false");
  EXPECT_EQ(samples("gone/1.bin", "2"), "1 true");
  EXPECT_EQ(samples("/etc/passwd", "2"), "1 true");
  EXPECT_EQ(samples("../../etc/passwd", "2"), "1 true");
  EXPECT_THAT(samples("r.json-bin/0.bin", "1000000000"), HasSubstr("expected 1000000000 samples"));
  std::filesystem::remove_all(folder);
}

TEST(Import, ForeignJsonIsOneLineThatListsTheFormats) {
  for (const char* text : {"{}", "[]", "[1]", "{\"a\": 1}", "[[[]]]"}) {
    EXPECT_THAT(import_refusal(text), HasSubstr("expected results of one of llama-bench")) << text;
  }
  EXPECT_THAT(import_refusal("a,b\n1,2\n"), HasSubstr("needs --mapping"));
}

TEST(Import, AssaysOwnBenchIsNotLlamaBench) {
  EXPECT_THAT(import_refusal(R"([{"build_commit": "a", "model_filename": "m", "n_prompt": 1}])"),
              HasSubstr("JSON of another kind"));
}

}  // namespace
}  // namespace assay
