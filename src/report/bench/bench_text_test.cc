// Benchmark rows in every format.
#include "report/bench/bench_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "analysis/analyze.h"
#include "analysis/rows/synthetic_bundle.h"
#include "base/records/json.h"
#include "base/tables/csv.h"
#include "base/text/fit_text.h"
#include "base/text/text.h"

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

std::string add(SyntheticBundle& bundle, const std::string& arm, Phase phase, double mean_ms,
                int64_t processes = 5) {
  const std::string id = bundle.add({.arm = arm,
                                     .phase = phase,
                                     .scenario = "prompt_16",
                                     .prompt_tokens = phase == Phase::kPrefill ? 16 : 1,
                                     .mean_ms = mean_ms,
                                     .noise = 0.01,
                                     .processes = processes});
  bundle.evidence(id) = {{"read_bytes", {{"1", 40'000'000}}},
                         {"read_limit", {{"bytes_per_s", 16e9}}},
                         {"worker", {{"threads", 2}}}};
  return id;
}

Bench bench_of(SyntheticBundle& made) {
  const Bundle bundle = made.build();
  const auto findings = analyze(bundle, {}, nullptr);
  EXPECT_TRUE(findings);
  const auto samples = group_rows(bundle, findings->study.arms);
  return make_bench(*findings, speeds(*samples),
                    {{"gpt2-25m", "models/it's", 1024 * 1024 * 3 / 2, 25'000'000}});
}

SyntheticBundle two_arms() {
  SyntheticBundle made(5);
  for (const auto& [arm, ms] : {std::pair{"eager", 10.0}, std::pair{"static", 8.0}}) {
    add(made, arm, Phase::kPrefill, ms);
    add(made, arm, Phase::kKvDecode, ms);
  }
  return made;
}

TEST(BenchText, OnAGpuPromptsHaveBothSharesAndRowsTheirEnergy) {
  SyntheticBundle made(5);
  for (const Phase phase : {Phase::kPrefill, Phase::kKvDecode}) {
    const std::string id = add(made, "eager", phase, 10);
    Json& evidence = made.evidence(id);
    evidence["requested"] = {{"options", {{"device", "cuda"}}}};
    evidence["read_bytes"] = {{"16", 40'000'000}, {"1", 40'000'000}};
    evidence["operations"] = {{"16", 5'000'000'000'000}};
    evidence["matrix_limit"] = 8e14;
    evidence["reported"] = {{"energy_counter", {{"step_ms", 100}, {"least_region_ms", 1000}}}};
  }
  const std::string without = render_bench(bench_of(made), BenchFormat::kTable, std::nullopt);
  EXPECT_THAT(without, HasSubstr("500, 63 %"));
  EXPECT_THAT(without, HasSubstr("left out: no repetition takes the 1000 ms"));
  Bundle bundle = made.build();
  for (Row& row : bundle.rows) {
    const double tokens = row.phase == Phase::kPrefill ? 16 : 64;
    row.energy_j = tokens * (*row.process == 0 ? 0.25 : 0.5);
  }
  const auto findings = analyze(bundle, {}, nullptr);
  ASSERT_TRUE(findings);
  const auto samples = group_rows(bundle, findings->study.arms);
  const Bench bench = make_bench(*findings, speeds(*samples), {{"gpt2-25m", "models/m", 1, 1}});
  for (const BenchRow& row : bench.rows) {
    EXPECT_DOUBLE_EQ(row.joules_per_token.value_or(0), 0.45) << row.test << ": of five processes";
    ASSERT_TRUE(row.joules_interval) << row.test;
    EXPECT_NEAR(row.joules_interval->low, 0.45 - 2.776 * 0.1118 / std::sqrt(5.0), 1e-3);
  }
  EXPECT_THAT(render_bench(bench, BenchFormat::kTable, std::nullopt),
              testing::AllOf(HasSubstr("J/token"), HasSubstr("0.450 [0.311, 0.589]")));
}

TEST(BenchText, OneRowATestAndArm) {
  SyntheticBundle made = two_arms();
  const Bench bench = bench_of(made);
  std::vector<std::string> rows;
  for (const BenchRow& row : bench.rows) rows.push_back(row.test + " " + row.speed.arm);
  EXPECT_THAT(rows, ElementsAre("pp16 eager", "pp16 static", "tg64 eager", "tg64 static"));
  EXPECT_EQ(bench.rows[0].verdict, "");
  EXPECT_EQ(bench.rows[1].verdict, "faster");
  EXPECT_NEAR(bench.rows[1].ratio.value(), 0.8, 0.02);
  EXPECT_NEAR(bench.rows[0].tokens_per_s.value(), 16 / bench.rows[0].mean_ms.value() * 1e3, 1e-6);
  EXPECT_NEAR(bench.rows[2].limit_bytes_per_s.value(), 16e9, 1);
}

TEST(BenchText, TheTableSaysWhatAllRowsShareOnce) {
  SyntheticBundle made = two_arms();
  const std::string text = render_bench(bench_of(made), BenchFormat::kTable);
  EXPECT_THAT(text,
              StartsWith("gpt2-25m fp32, 1.50 MiB, 25.00 M parameters; native cpu, 2 threads"));
  EXPECT_THAT(text, HasSubstr("arm     test"));
  EXPECT_THAT(text, HasSubstr("1 (baseline)"));
  EXPECT_THAT(text, HasSubstr("] faster"));
  EXPECT_THAT(text, HasSubstr("25 %"));
}

// Two processes leave a t interval one degree of freedom.
TEST(BenchText, TooFewProcessesHaveARangeInEveryFormat) {
  for (const int64_t processes : {2, 3, 4}) {
    SyntheticBundle made(6);
    add(made, "eager", Phase::kPrefill, 10, processes);
    add(made, "static", Phase::kPrefill, 8, processes);
    const Bench bench = bench_of(made);
    const bool few = processes < 4;
    for (const BenchFormat format : {BenchFormat::kTable, BenchFormat::kMarkdown}) {
      const std::string text = render_bench(bench, format);
      EXPECT_EQ(
          testing::Matches(testing::ContainsRegex("10\\.[0-9]+ range [0-9.]+-1[0-9.]+ "))(text),
          few)
          << text;
      EXPECT_EQ(testing::Matches(testing::ContainsRegex("0\\.[0-9]+ range 0\\.[0-9]+-0\\."))(text),
                few)
          << text;
      EXPECT_EQ(text.contains("\"range\" is from the least to the largest"), few) << text;
    }
    for (const Json& row : Json::parse(render_bench(bench, BenchFormat::kJson))) {
      EXPECT_EQ(row["avg_low_ns"].is_null(), few);
      EXPECT_EQ(row["avg_process_low_ns"].is_null(), !few);
      if (row["arm"] == "eager") continue;
      EXPECT_EQ(row["ratio_high"].is_null(), few);
      EXPECT_EQ(row["ratio_process_high"].is_null(), !few);
    }
  }
}

TEST(BenchText, ANarrowTerminalGetsFewerColumnsWithWholeFigures) {
  SyntheticBundle made = two_arms();
  const Bench bench = bench_of(made);
  const auto lines = split(render_bench(bench, BenchFormat::kTable, 85), '\n');
  const auto head =
      std::ranges::find_if(lines, [](const std::string& line) { return line.starts_with("arm "); });
  ASSERT_NE(head, lines.end());
  EXPECT_THAT(*head, testing::MatchesRegex("arm +test +t/s +ms +ratio"));
  for (const std::string& line : lines) EXPECT_LE(display_width(line), 85u) << line;
  const std::string text = join(lines, "\n");
  EXPECT_THAT(text, HasSubstr("] faster\n"));
  EXPECT_THAT(text, HasSubstr("left out, as the terminal is narrow: limit, GB/s (-o csv has all)"));
  EXPECT_THAT(render_bench(bench, BenchFormat::kTable, 200), Not(HasSubstr("left out")));
  EXPECT_THAT(render_bench(bench, BenchFormat::kTable, 20), HasSubstr("] faster\n"))
      << "wider than the terminal rather than cut";
}

// The columns of llama-bench's own table, and ours among them.
TEST(BenchText, MarkdownReadsAsLlamaBenchDoes) {
  SyntheticBundle made = two_arms();
  const auto lines = split(render_bench(bench_of(made), BenchFormat::kMarkdown), '\n');
  std::vector<std::string> columns = split(lines[0], '|');
  for (std::string& column : columns) std::erase(column, ' ');
  EXPECT_THAT(columns, ElementsAre("", "model", "size", "params", "backend", "threads", "arm",
                                   "test", "t/s", "ms", "GB/s", "limit", "ratio", ""));
  EXPECT_THAT(lines[1], HasSubstr("---: |"));
  EXPECT_THAT(
      lines[2],
      StartsWith("| gpt2-25m fp32 | 1.50 MiB | 25.00 M | native cpu |       2 | eager  | pp16 |"));
  EXPECT_THAT(lines[2], testing::ContainsRegex("[0-9]+\\.[0-9][0-9] \u00b1 [0-9.]+ \\|"));
  EXPECT_THAT(lines[lines.size() - 2], StartsWith("build: abc; "));
}

TEST(BenchText, DataHasTheSameColumnsInEveryFormat) {
  SyntheticBundle made = two_arms();
  const Bench bench = bench_of(made);
  const auto json = parse_json(render_bench(bench, BenchFormat::kJson), "json");
  ASSERT_TRUE(json) << json.error().message;
  ASSERT_EQ(json->size(), 4u);
  const Json& row = (*json)[3];
  EXPECT_EQ(row["n_gen"], 64);
  EXPECT_EQ(row["n_prompt"], 0);
  EXPECT_EQ(row["n_depth"], 1);
  EXPECT_EQ(row["samples_ns"].size(), 30u);
  EXPECT_NEAR(row["avg_ns"].get<double>(), 8e6, 1e5);
  EXPECT_NEAR(row["avg_ts"].get<double>() * row["avg_ns"].get<double>(), 64e9, 1e6);
  EXPECT_NEAR(row["limit_share"].get<double>(), 0.31, 0.02);
  const std::string jsonl = render_bench(bench, BenchFormat::kJsonl);
  EXPECT_EQ(std::ranges::count(jsonl, '\n'), 4);
  EXPECT_EQ(to_json_line((*json)[0]), split(jsonl, '\n')[0]);
  const std::string csv = render_bench(bench, BenchFormat::kCsv);
  CsvReader reader(csv, "csv");
  const auto names = reader.next();
  ASSERT_TRUE(names);
  EXPECT_EQ(names->size() + 2, row.size()) << "all but the samples";
  EXPECT_EQ(reader.next()->size(), names->size());
}

TEST(BenchText, SqlMakesATableAndQuotes) {
  SyntheticBundle made = two_arms();
  const std::string sql = render_bench(bench_of(made), BenchFormat::kSql);
  EXPECT_THAT(sql, StartsWith("CREATE TABLE IF NOT EXISTS assay_bench (\n  build_commit TEXT,\n"));
  EXPECT_THAT(sql, HasSubstr("\n);\n\nINSERT INTO assay_bench (build_commit, "));
  EXPECT_THAT(sql, HasSubstr("'models/it''s'"));
  EXPECT_THAT(sql, HasSubstr("NULL"));
}

TEST(BenchText, LostRowsAndWarningsAreShown) {
  SyntheticBundle made = two_arms();
  made.lose("c000-eager-prefill-prompt_16", 3, RowStatus::kCrash, "SIGSEGV");
  const Bench bench = bench_of(made);
  EXPECT_THAT(bench.remarks.front(), testing::StartsWith("static, pp16: not comparable: "));
  EXPECT_EQ(bench.rows[1].verdict, "not comparable");
  EXPECT_FALSE(bench.rows[1].ratio);
  for (const BenchFormat format : {BenchFormat::kTable, BenchFormat::kMarkdown}) {
    const std::string text = render_bench(bench, format);
    EXPECT_THAT(text, HasSubstr("lost"));
    EXPECT_THAT(text, HasSubstr("not comparable"));
    EXPECT_THAT(text, HasSubstr("- static, pp16"));
  }
}

TEST(BenchText, FormatsHaveTheirWords) {
  for (const std::string& name : bench_format_names()) EXPECT_TRUE(parse_bench_format(name));
  EXPECT_EQ(parse_bench_format("xml").error().message,
            "output format: expected table, json, jsonl, csv, md, sql, found \"xml\"");
}

}  // namespace
}  // namespace assay
