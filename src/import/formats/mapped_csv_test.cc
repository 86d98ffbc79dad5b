// CSVs by mappings: arrays, units, statuses, rows that can't be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "import/import_fixture.h"

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kArrays =
    "columns: {arm: backend, model: model, latencies: latencies_ms, tokens: n, status: state}\n"
    "constants: {phase: kv_decode, new_tokens: 4}\n"
    "status: {ok: success, crash: died, other: error}\n";

TEST(MappedCsv, ArraysAreUnrolledInTheirOrderAndEachBeginsCold) {
  const auto made = rows_of_text(
      "backend,model,latencies_ms,n,state\n"
      "a,m,\"[9.5, 2, 3]\",4,success\n"
      "a,m,7;1.5 ,4,success\n",
      kArrays);
  ASSERT_TRUE(made) << made.error().message;
  std::vector<double> ms;
  std::vector<bool> cold;
  std::vector<int64_t> processes;
  std::vector<int64_t> repetitions;
  for (const Row& row : made->rows) {
    ms.push_back(*row.latency_ms);
    cold.push_back(row.cold);
    processes.push_back(*row.process);
    repetitions.push_back(row.repetition);
  }
  EXPECT_THAT(ms, ElementsAre(9.5, 2, 3, 7, 1.5));
  EXPECT_THAT(cold, ElementsAre(true, false, false, true, false));
  EXPECT_THAT(processes, ElementsAre(0, 0, 0, 1, 1));
  EXPECT_THAT(repetitions, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(made->cells.size(), 1U);
}

TEST(MappedCsv, FirstSamplesAreWarmWhereTheMappingOrTheUserSaysSo) {
  const std::string text = "backend,model,latencies_ms,n,state\na,m,9;2,4,success\n";
  EXPECT_EQ(rows_of_text(text, kArrays)->cold, 1);
  EXPECT_EQ(rows_of_text(text, kArrays, FirstSamples::kWarm)->cold, 0);
  const std::string warmed_up = std::string("warmed_up: true\n") + kArrays;
  EXPECT_EQ(rows_of_text(text, warmed_up)->cold, 0);
  EXPECT_EQ(rows_of_text(text, warmed_up, FirstSamples::kCold)->cold, 1);
}

TEST(MappedCsv, RowsOfOneConditionAreOneRunWhichASeriesDivides) {
  const std::string mapping = "columns: {arm: a, latency: t_us, series: file}\n";
  const auto made = rows_of_text("a,t_us,file\nx,10,1\ny,20,1\nx,30,1\nx,40,2\n", mapping);
  ASSERT_TRUE(made) << made.error().message;
  ASSERT_EQ(made->rows.size(), 4U);
  EXPECT_EQ(*made->rows[0].latency_ms, 0.01);
  EXPECT_EQ(made->rows[1].arm, "x");
  EXPECT_EQ(*made->rows[1].latency_ms, 0.03);
  EXPECT_FALSE(made->rows[1].cold);
  EXPECT_EQ(made->rows[2].arm, "y");
  EXPECT_EQ(*made->rows[3].process, 1) << "series 2 of x is another run";
  EXPECT_TRUE(made->rows[3].cold);
}

TEST(MappedCsv, RowsThatCannotHaveBeenAreFalseSuccesses) {
  const auto made = rows_of_text(
      "backend,model,latencies_ms,n,state\n"
      "a,m,0.3,0,success\n"
      "a,m,5,3,success\n"
      "a,m,5,-4,success\n"
      "a,m,5,1e15,success\n"
      "a,m,-1,4,success\n"
      "a,m,nan,4,success\n"
      "a,m,0,4,success\n"
      "a,m,1e12,4,success\n"
      "a,m,[],4,success\n"
      "a,m,5,4,success\n",
      kArrays);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_THAT(statuses_of(*made),
              ElementsAre("false_success too_few_tokens", "false_success too_few_tokens",
                          "false_success impossible_tokens", "false_success impossible_tokens",
                          "false_success impossible_latency", "false_success impossible_latency",
                          "false_success zero_latency", "false_success impossible_latency",
                          "false_success no_latency", "ok"));
}

TEST(MappedCsv, ZeroTokensAreTooFewWhereNobodySaysHowManyWereAskedFor) {
  const auto made = rows_of_text("t_ms,n\n5,0\n5,7\n",
                                 "columns: {latency: t_ms, tokens: n}\n"
                                 "constants: {phase: kv_decode}\n");
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_THAT(statuses_of(*made), ElementsAre("false_success too_few_tokens", "ok"));
  EXPECT_EQ(made->rows[1].new_tokens, 7);
  EXPECT_EQ(made->rows[0].new_tokens, 7) << "the loss is of the same stratum";
  EXPECT_TRUE(made->unknown.begin()->second.contains("new_tokens"));
}

TEST(MappedCsv, StatusesFollowTheRules) {
  const auto made = rows_of_text(
      "backend,model,latencies_ms,n,state\na,m,,,died\na,m,,,whatever\na,m,5,4,success\n", kArrays);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_THAT(statuses_of(*made), ElementsAre("crash died", "error whatever", "ok"));
}

TEST(MappedCsv, AStatusThatNoRuleHasIsRefused) {
  EXPECT_THAT(import_refusal("t_ms,s\n5,fine\n", "columns: {latency: t_ms, status: s}\n"),
              HasSubstr("file line 2 column \"s\": expected a word"));
}

TEST(MappedCsv, RatesBecomeTimes) {
  const auto made = rows_of_text("rate\n100\n",
                                 "columns: {tokens_per_s: rate}\n"
                                 "constants: {phase: kv_decode, new_tokens: 50}\n");
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(*made->rows[0].latency_ms, 500);
  EXPECT_THAT(import_refusal("rate\n100\n", "columns: {tokens_per_s: rate}\n"),
              HasSubstr("beside a rate"));
}

TEST(MappedCsv, ADelimiterLeavesDecimalCommasAndQuotesAlone) {
  const auto made = rows_of_text("t_ms;arm\n5;\"a;b, c\"\n",
                                 "delimiter: ;\ncolumns: {latency: t_ms, arm: arm}\n");
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->rows[0].arm, "a;b, c");
  EXPECT_THAT(
      import_refusal("t_ms;arm\n5,5;a\n", "delimiter: ;\ncolumns: {latency: t_ms, arm: arm}\n"),
      HasSubstr("expected a number, found \"5,5\""));
}

TEST(MappedCsv, WordsAreTranslated) {
  const auto made = rows_of_text("t_ms,c\n5,StaticCache\n5,-\n",
                                 "columns: {latency: t_ms, cache: c}\n"
                                 "words: {cache: {StaticCache: static, \"-\": \"\"}}\n");
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->rows[0].cache, "static");
  EXPECT_EQ(made->rows[1].cache, "");
  EXPECT_EQ(made->arms.size(), 2U);
}

TEST(MappedCsv, WhatTheMappingSaysOfACompilerIsKept) {
  const std::string text = "t_ms,arm\n5,gpu\n5,gpu-compile\n";
  const std::string mapping = "columns: {latency: t_ms, arm: arm}\n";
  const auto unproven = rows_of_text(text, mapping);
  ASSERT_TRUE(unproven);
  EXPECT_EQ(unproven->cells[1].compile_mode, "compiled");
  EXPECT_TRUE(unproven->cells[1].named_compiled);
  EXPECT_EQ(unproven->cells[1].compiler.verdict, CompilerReal::kUnproven);
  EXPECT_EQ(unproven->cells[0].compile_mode, "");
  const std::string rule = "compiler: [{arm: gpu-compile, verdict: label_only, reason: never}]\n";
  const auto label = rows_of_text(text, mapping + rule);
  ASSERT_TRUE(label) << label.error().message;
  EXPECT_EQ(label->cells[1].compiler.verdict, CompilerReal::kLabelOnly);
  EXPECT_THAT(import_refusal("t_ms,arm\n5,gpu-compil\n", mapping + rule),
              HasSubstr("did you mean \"gpu-compil\"?"));
}

TEST(MappedCsv, AListHasOneMarkAndNoDecimalCommas) {
  const auto read = [](const std::string& list) {
    const auto made =
        rows_of_text(fmt::format("t_ms\n\"{}\"\n", list), "columns: {latencies: t_ms}\n");
    if (!made) return made.error().message;
    std::string values;
    for (const Row& row : made->rows) values += fmt::format("{} ", row.latency_ms.value_or(-1));
    return values;
  };
  for (const char* list : {"[1.5, 2]", "[1.5,2]", "1.5;2", "1.5; 2", "1.5 2", "1.5\t2", "1.5|2",
                           "[1.5 2]", "[1.5, 2,]", " [ 1.5;2 ] "}) {
    EXPECT_EQ(read(list), "1.5 2 ") << list;
  }
  // A reader that takes commas for marks would make four numbers of the first two lists.
  for (const char* list : {"0,19;0,21", "[0,19; 0,21]", "0,19 0,21", "0,19", "1.5,2", "1.5;2|3"}) {
    EXPECT_THAT(read(list), HasSubstr("with one mark between them), found \"" + std::string(list)));
  }
  EXPECT_THAT(read("[1,,2]"), HasSubstr("expected a number, found \"\""));
  EXPECT_THAT(read("["), HasSubstr("expected a list"));
  EXPECT_THAT(read("[1"), HasSubstr("expected a list"));
}

TEST(MappedCsv, TheLastLineEndMayBeMissingAndThatIsSaid) {
  const std::string mapping = "columns: {latency: t_ms, arm: arm}\n";
  const auto whole = import_text("arm,t_ms\na,5\nb,6\n", mapping);
  const auto without = import_text("arm,t_ms\r\na,5\r\nb,6", mapping);
  ASSERT_TRUE(whole && without);
  EXPECT_THAT(whole->notes, testing::IsEmpty());
  ASSERT_EQ(without->notes.size(), 1U);
  EXPECT_THAT(without->notes[0], HasSubstr("the last value may be another"));
  ASSERT_EQ(without->runs.size(), 2U);
  EXPECT_EQ(without->runs[1].samples[0].latency_ms, 6);
  EXPECT_THAT(import_refusal("arm,t_ms\na,5\nb", mapping), HasSubstr("expected 2 fields, found 1"));
}

TEST(MappedCsv, EmptyLinesMayComeBeforeTheHeader) {
  EXPECT_EQ(import_refusal("\n\r\nt_ms\n5\n", "columns: {latency: t_ms}\n"), "read");
  EXPECT_THAT(import_refusal(",t\n0,5\n", "columns: {latency: t_ms, arm: a}\n"),
              testing::Not(HasSubstr("\"\"?")));
}

TEST(MappedCsv, ALabelThatTheFileItselfContradictsIsALabelAlone) {
  const std::string mapping = "columns: {latency: t_ms, arm: arm, compile_mode: mode}\n";
  const auto made =
      rows_of_text("t_ms,arm,mode\n5,gpu,eager\n5,gpu-compile,eager\n5,fast,\n", mapping);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->cells[0].compiler.verdict, CompilerReal::kNotApplicable);
  EXPECT_EQ(made->cells[0].compile_mode, "eager");
  EXPECT_EQ(made->cells[1].compiler.verdict, CompilerReal::kLabelOnly);
  EXPECT_EQ(made->rows[1].compile_mode, "compiled") << "so that the label is judged";
  EXPECT_THAT(made->cells[1].compiler.reason, HasSubstr("the file says that the mode is eager"));
  EXPECT_EQ(made->cells[2].compile_mode, "");
}

TEST(MappedCsv, AVerdictOfTheMappingIsAClaimWhateverTheArmIsCalled) {
  const std::string mapping = "columns: {latency: t_ms, arm: arm, compile_mode: mode}\ncompiler: ";
  for (const char* mode : {"", "eager", "default"}) {
    for (const char* verdict : {"label_only", "fallback", "unproven"}) {
      const auto made =
          rows_of_text(fmt::format("t_ms,arm,mode\n5,fast,{}\n", mode),
                       mapping + fmt::format("[{{arm: fast, verdict: {}, reason: r}}]\n", verdict));
      ASSERT_TRUE(made) << made.error().message;
      EXPECT_EQ(compiler_real_name(made->cells[0].compiler.verdict), verdict);
      EXPECT_EQ(made->rows[0].compile_mode,
                std::string(mode) == "default" ? "default" : "compiled");
    }
  }
}

TEST(MappedCsv, ForeignAndCutTablesAreOneLine) {
  EXPECT_THAT(import_refusal("t_ms\n\"5", "columns: {latency: t_ms}\n"),
              HasSubstr("a closing quote"));
  EXPECT_THAT(import_refusal("t_ms,b\n5\n", "columns: {latency: t_ms}\n"),
              HasSubstr("file line 2: expected 2 fields, found 1"));
  EXPECT_THAT(import_refusal("t_m\n5\n", "columns: {latency: t_ms}\n"),
              HasSubstr("did you mean \"t_m\"?"));
  EXPECT_THAT(import_refusal("t_ms,t_ms\n5,5\n", "columns: {latency: t_ms}\n"),
              HasSubstr("found several"));
  EXPECT_THAT(import_refusal("t_ms\nabc\n", "columns: {latency: t_ms}\n"),
              HasSubstr("expected a number, found \"abc\""));
  EXPECT_THAT(import_refusal("{}", "columns: {latency: t_ms}\n"), HasSubstr("found JSON"));
  EXPECT_THAT(import_refusal("t_ms\n", "columns: {latency: t_ms}\n"), HasSubstr("found none"));
  EXPECT_THAT(
      import_refusal(std::string("t_ms,arm\n5,a\0b\n", 15), "columns: {latency: t_ms, arm: arm}\n"),
      HasSubstr("control characters"));
  EXPECT_THAT(import_refusal("t_ms,arm\n5,\xFF\n", "columns: {latency: t_ms, arm: arm}\n"),
              HasSubstr("UTF-8"));
  EXPECT_THAT(import_refusal(std::string(100'000, ',') + "\n", "columns: {latency: t_ms}\n"),
              HasSubstr("at most 2000 fields"));
  EXPECT_THAT(
      import_refusal("t_ms,b\n5,99999999999999999999\n", "columns: {latency: t_ms, batch: b}\n"),
      HasSubstr("expected an integer from 1"));
}

}  // namespace
}  // namespace assay
