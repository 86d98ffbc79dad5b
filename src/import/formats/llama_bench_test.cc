// llama-bench's four formats: their statements on a test, and tests that contradict themselves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "import/import_fixture.h"

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Json bench_test(int64_t prompt, int64_t generated) {
  return {{"build_commit", "abc1234"},
          {"build_number", 5000},
          {"cpu_info", "Example CPU"},
          {"gpu_info", ""},
          {"backends", "CPU"},
          {"model_filename", "models/tiny-q4.gguf"},
          {"model_type", "llama 1B Q4_K - Medium"},
          {"model_size", 1000},
          {"n_threads", 2},
          {"n_prompt", prompt},
          {"n_gen", generated},
          {"n_depth", 0},
          {"test_time", "2026-11-25T09:55:10Z"},
          {"avg_ns", 2'000'000},
          {"samples_ns", {1'000'000, 3'000'000}},
          {"samples_ts",
           {static_cast<double>(prompt + generated) * 1e3,
            static_cast<double>(prompt + generated) / 3 * 1e3}}};
}

std::string json_of(std::vector<Json> tests) {
  return to_json_text(Json(std::move(tests)));
}

TEST(LlamaBench, ATestsConditionsAndSamples) {
  const auto made = rows_of_text(json_of({bench_test(512, 0), bench_test(0, 128)}));
  ASSERT_TRUE(made) << made.error().message;
  ASSERT_EQ(made->rows.size(), 4U);
  const Row& prefill = made->rows[1];
  EXPECT_EQ(prefill.phase, Phase::kPrefill);
  EXPECT_EQ(prefill.scenario, "pp512");
  EXPECT_EQ(prefill.prompt_tokens, 512);
  EXPECT_EQ(prefill.new_tokens, 0);
  EXPECT_EQ(*prefill.latency_ms, 3);
  EXPECT_EQ(prefill.status, RowStatus::kOk);
  EXPECT_EQ(prefill.quantization, "Q4_K - Medium");
  EXPECT_EQ(prefill.model, "tiny-q4");
  EXPECT_EQ(made->rows[0].started_at_ns, 1'795'600'510'000'000'000);
  const Row& decode = made->rows[2];
  EXPECT_EQ(decode.phase, Phase::kKvDecode);
  EXPECT_EQ(decode.new_tokens, 128);
  EXPECT_EQ(*decode.tokens, 128);
  EXPECT_THAT(made->unknown.at("CPU"),
              testing::UnorderedElementsAre("cache", "compile_mode", "dynamic", "padding",
                                            "code_generator", "setting.warmup"));
  EXPECT_EQ(made->cold, 0) << "the tool warms up before each test";
}

TEST(LlamaBench, ATimeThatIsNoneIsNamed) {
  Json test = bench_test(16, 4);
  test["test_time"] = "noon";
  const auto made = rows_of_text(json_of({test}));
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message,
              testing::HasSubstr("test_time: expected a time such as 2026-11-25T09:55:10Z, found"));
}

TEST(LlamaBench, BothAtOnceAtADepth) {
  Json test = bench_test(16, 4);
  test["n_depth"] = 100;
  const auto made = rows_of_text(json_of({test}));
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->rows[0].phase, Phase::kE2eKv);
  EXPECT_EQ(made->rows[0].scenario, "pp16+tg4@d100");
}

TEST(LlamaBench, JsonLinesAreTheSame) {
  const auto made =
      rows_of_text(to_json_line(bench_test(8, 0)) + "\n" + to_json_line(bench_test(0, 8)) + "\n");
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->rows.size(), 4U);
}

TEST(LlamaBench, CsvAndSqlHaveOneMeanATest) {
  const std::string csv =
      "build_commit,build_number,backends,model_filename,model_type,n_threads,n_prompt,n_gen,"
      "test_time,avg_ns,stddev_ns\n"
      "\"abc\",\"1\",\"CPU\",\"a, b.gguf\",\"llama 1B all F32\",\"2\",\"512\",\"0\","
      "\"2026-11-25T09:55:10Z\",\"5000000\",\"1\"\n";
  const std::string sql =
      "CREATE TABLE IF NOT EXISTS llama_bench (\n build_commit TEXT\n);\n"
      "INSERT INTO llama_bench (build_commit, build_number, backends, model_filename, model_type, "
      "n_threads, n_prompt, n_gen, test_time, avg_ns) VALUES ('abc', '1', 'CPU', 'a''s.gguf', "
      "'llama 1B all F32', '2', '512', '0', '2026-11-25T09:55:10Z', '5000000');\n";
  for (const std::string& text : {csv, sql}) {
    const auto made = rows_of_text(text);
    ASSERT_TRUE(made) << made.error().message;
    ASSERT_EQ(made->rows.size(), 1U);
    EXPECT_EQ(made->means, 1);
    EXPECT_EQ(made->cold, 0) << "a mean is no first sample";
    EXPECT_EQ(*made->rows[0].latency_ms, 5);
    EXPECT_EQ(made->rows[0].dtype, "fp32");
  }
  EXPECT_EQ(rows_of_text(csv)->rows[0].model, "a, b");
  EXPECT_EQ(rows_of_text(sql)->rows[0].model, "a's");
}

TEST(LlamaBench, SqlOfOtherProgramsIsReadWholeOrNotAtAll) {
  const std::string columns =
      "build_commit, build_number, backends, model_filename, model_type, n_prompt, n_gen, avg_ns";
  const std::string row = "('a', '1', 'CPU', 'm.gguf', 'llama 1B F16', '8', '0', '5')";
  const auto rows = [&](const std::string& text) {
    const auto made = rows_of_text("INSERT INTO llama_bench " + text);
    return made ? std::to_string(made->rows.size()) : made.error().message;
  };
  EXPECT_EQ(rows("(" + columns + ") VALUES " + row + ";\n"), "1");
  EXPECT_EQ(rows("(" + columns + ") VALUES " + row), "1");
  EXPECT_EQ(rows("(" + columns + ") VALUES " + row + ",\n" + row + ";\n"), "2")
      << "of one statement";
  std::string quoted = "(\"" + columns + "\")";
  for (size_t at = 0; (at = quoted.find(", ", at)) != std::string::npos;) {
    quoted.replace(at, 2, "\",\"");
  }
  EXPECT_EQ(rows(quoted + " VALUES " + row + ";"), "1");
  std::ranges::replace(quoted, '"', '`');
  EXPECT_EQ(rows(quoted + " VALUES " + row + ";"), "1");
  EXPECT_THAT(rows("(" + columns + ") VALUES " + row + " ON CONFLICT DO NOTHING;"),
              HasSubstr("expected \";\" in an INSERT statement, found \"ON CONFLICT"));
  EXPECT_THAT(rows("(" + columns + ") VALUES (X'61', '1', 'CPU', 'm', 'n', '8', '0', '5');"),
              HasSubstr("expected a text in quotes or a number, found \"X'61'\""));
  EXPECT_THAT(rows("(" + columns + ") VALUES ('a', '1', 'CPU', 'm', 'n', NULL, '0', '5');"),
              HasSubstr("expected a number at \"n_prompt\", found nothing"));
}

TEST(LlamaBench, TimesAndRatesAreOfTheSameSamples) {
  Json test = bench_test(0, 128);
  test["samples_ts"].push_back(1.0);
  EXPECT_THAT(import_refusal(json_of({test})),
              HasSubstr("expected 2 entries at \"samples_ts\" as at \"samples_ns\", found 3"));
}

TEST(LlamaBench, SamplesWhoseRateSaysOtherTokensAreFalseSuccesses) {
  Json test = bench_test(0, 128);
  test["samples_ts"][1] = 1.0;
  const auto made = rows_of_text(json_of({test}));
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_THAT(statuses_of(*made), ElementsAre("ok", "false_success too_few_tokens"));
}

TEST(LlamaBench, ModelsOfOneNameInTwoFoldersAreTwo) {
  Json other = bench_test(8, 0);
  other["model_filename"] = "elsewhere/tiny-q4.gguf";
  const auto made = rows_of_text(json_of({bench_test(8, 0), other}));
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->rows[0].model, "models/tiny-q4.gguf");
  EXPECT_EQ(made->rows[2].model, "elsewhere/tiny-q4.gguf");
}

// They would else be pooled as one model.
TEST(LlamaBench, OfModelsInTwoFoldersAPathThatIsNoNameIsRefused) {
  Json other = bench_test(8, 0);
  other["model_filename"] = std::string(300, 'x') + "/tiny-q4.gguf";
  const auto made = rows_of_text(json_of({bench_test(8, 0), other}));
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message, HasSubstr("\"model\" of one line of at most 200 bytes"));
}

TEST(LlamaBench, ForeignValuesAreOneLine) {
  const auto with = [](const char* key, Json value) {
    Json test = bench_test(8, 0);
    test[key] = std::move(value);
    return import_refusal(json_of({test}));
  };
  EXPECT_THAT(with("n_prompt", "many"), HasSubstr("file: test 1: n_prompt: expected an integer"));
  EXPECT_THAT(with("n_prompt", -1), HasSubstr("found \"-1\""));
  EXPECT_THAT(with("n_gen", 1e300), HasSubstr("expected an integer"));
  EXPECT_THAT(with("n_prompt", 0), HasSubstr("found 0 at both"));
  EXPECT_THAT(with("samples_ns", 5), HasSubstr("expected a list of numbers"));
  EXPECT_THAT(with("samples_ns", {1, "x"}), HasSubstr("expected numbers"));
  EXPECT_THAT(with("model_filename", "a\nb"), HasSubstr("control characters"));
  EXPECT_THAT(with("model_filename", std::string(5000, 'x')), HasSubstr("at most 200 bytes"));
  EXPECT_THAT(import_refusal("INSERT INTO llama_bench (a, b"), HasSubstr("found the end"));
  EXPECT_THAT(import_refusal("INSERT INTO llama_bench (build_commit) VALUES ('a"),
              HasSubstr("end of a text in quotes"));
}

}  // namespace
}  // namespace assay
