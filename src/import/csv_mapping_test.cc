// Mapping files, and the errors for faulty ones.
#include "import/csv_mapping.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

using testing::HasSubstr;

std::string mapping_refusal(std::string_view text) {
  const auto mapping = parse_csv_mapping(text, "map.yaml");
  return mapping ? "read" : mapping.error().message;
}

TEST(CsvMapping, EveryKeyIsRead) {
  const auto mapping = parse_csv_mapping(R"(
name: table
baseline: eager
order: interleaved
delimiter: tab
warmed_up: true
columns: {arm: backend, model: model, latencies: latencies_ms, ttft: first, tokens: n, status: state}
units: {ttft: s}
constants: {phase: e2e_kv, batch: 2}
words: {cache: {StaticCache: static, none: ""}}
status: {ok: [success, done], oom: CUDA, other: crash}
compiler: [{arm: c, verdict: label_only, reason: nobody called it}]
)",
                                         "map.yaml");
  ASSERT_TRUE(mapping) << mapping.error().message;
  EXPECT_EQ(mapping->name, "table");
  EXPECT_EQ(mapping->baseline, "eager");
  EXPECT_EQ(mapping->order, "interleaved");
  EXPECT_EQ(mapping->delimiter, '\t');
  EXPECT_TRUE(mapping->warmed_up);
  EXPECT_EQ(mapping->field_columns.at(ImportField::kArm), "backend");
  EXPECT_EQ(mapping->figure_columns.at(CsvFigure::kTokens), "n");
  EXPECT_EQ(mapping->to_ms.at(CsvFigure::kLatencies), 1);
  EXPECT_EQ(mapping->to_ms.at(CsvFigure::kTtft), 1000);
  EXPECT_EQ(mapping->constants.at(ImportField::kBatch), "2");
  EXPECT_EQ(mapping->words.at(ImportField::kCache).at("StaticCache"), "static");
  EXPECT_EQ(mapping->words.at(ImportField::kCache).at("none"), "");
  EXPECT_EQ(mapping->statuses.at("done"), RowStatus::kOk);
  EXPECT_EQ(mapping->statuses.at("CUDA"), RowStatus::kOom);
  EXPECT_EQ(mapping->other_status, RowStatus::kCrash);
  ASSERT_EQ(mapping->compiler.size(), 1U);
  EXPECT_EQ(mapping->compiler[0].word.verdict, CompilerReal::kLabelOnly);
}

TEST(CsvMapping, ATimeNeedsAUnitAndNoneIsGuessed) {
  EXPECT_THAT(mapping_refusal("columns: {latency: wall}\n"), HasSubstr("a unit of latency"));
  EXPECT_EQ(mapping_refusal("columns: {latency: wall_us}\n"), "read");
  EXPECT_EQ(mapping_refusal("columns: {latency: wall}\nunits: {latency: us}\n"), "read");
}

TEST(CsvMapping, OneLatencyIsMapped) {
  EXPECT_THAT(mapping_refusal("columns: {arm: a}\n"), HasSubstr("found 0"));
  EXPECT_THAT(mapping_refusal("columns: {latency: a_ms, tokens_per_s: b}\n"), HasSubstr("found 2"));
}

TEST(CsvMapping, NoMappingProvesACompiler) {
  EXPECT_THAT(mapping_refusal("columns: {latency: a_ms}\n"
                              "compiler: [{arm: c, verdict: yes, reason: trust me}]\n"),
              HasSubstr("one of label_only, fallback, unproven"));
}

TEST(CsvMapping, WhatIsWrongIsOneLineWithTheNearestWord) {
  EXPECT_THAT(mapping_refusal("colums: {latency: a_ms}\n"), HasSubstr("columns"));
  EXPECT_THAT(mapping_refusal("columns: {latency: a_ms, quantisation: q}\n"),
              HasSubstr("quantization"));
  EXPECT_THAT(mapping_refusal("columns: {latency: a_ms}\nconstants: {phase: decode}\n"),
              HasSubstr("kv_decode"));
  EXPECT_THAT(mapping_refusal("columns: {latency: a_ms, batch: b}\nconstants: {batch: 1}\n"),
              HasSubstr("no column"));
  EXPECT_THAT(mapping_refusal("columns: {latency: a_ms}\nstatus: {ok: x, error: x}\n"),
              HasSubstr("each word under one status"));
  EXPECT_THAT(mapping_refusal("columns: {latency: a_ms}\nconstants: {batch: 0}\n"),
              HasSubstr("from 1 to"));
  EXPECT_THAT(mapping_refusal(""), HasSubstr("map.yaml"));
}

}  // namespace
}  // namespace assay
