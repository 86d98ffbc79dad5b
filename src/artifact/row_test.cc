#include "artifact/row.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/random.h"
#include "base/records/count_limits.h"
#include "base/tables/csv.h"

namespace assay {
namespace {

using testing::HasSubstr;

Row full_row() {
  Row row;
  row.cell_id = "c001-eager-m-prefill-single_micro-b1";
  row.backend = "native";
  row.arm = "eager, \"plain\"";
  row.model = "gpt2-25m";
  row.dtype = "fp32";
  row.quantization = "q4_0";
  row.cache = "dynamic";
  row.compile_mode = "eager";
  row.dynamic = "auto";
  row.padding = "none";
  row.phase = Phase::kE2eKv;
  row.scenario = "single_micro";
  row.prompt_id = "0";
  row.batch = 2;
  row.prompt_tokens = 10;
  row.padded_tokens = 16;
  row.new_tokens = 64;
  row.repetition = -3;
  row.block = 4;
  row.order_index = 17;
  row.status = RowStatus::kFalseSuccess;
  row.error_class = "too few\ntokens";
  row.cold = true;
  row.latency_ms = 0.1;
  row.device_ms = 1e-7;
  row.ttft_ms = 12345678.900000001;
  row.tokens = 128;
  row.tokens_per_s = 1.0 / 3;
  row.counts[Counter::kUniqueGraphs] = 1;
  row.counts[Counter::kRecompiles] = 0;
  row.counts[Counter::kKernelsCompiled] = 3;
  row.counts[Counter::kGraphReplays] = 4;
  row.counts[Counter::kFallbacks] = 5;
  row.sm_clock_mhz = 2400.5;
  row.temperature_c = -3;
  row.power_w = 65;
  row.throttled = false;
  row.output_hash = "00ff00ff00ff00ff";
  row.started_at_ns = std::numeric_limits<int64_t>::max();
  row.counts[Counter::kGraphBreaks] = 6;
  row.counts[Counter::kRecompileLimitHits] = 0;
  row.counts[Counter::kCudagraphCaptures] = 8;
  row.counts[Counter::kCudagraphSkips] = 9;
  row.counts[Counter::kFxCacheHits] = kMostCounted;
  row.compile_ms_delta = 1234.5;
  row.fresh_cache = true;
  row.process = 2;
  row.counts[Counter::kKernelsLoaded] = 7;
  row.energy_j = 12.25;
  row.yardstick_lookups_us = 30.811;
  row.yardstick_multiplies_us = 14.25;
  row.counts[Counter::kCachedTokens] = 1;
  row.client_ms = 13.75;
  row.server_ms = 13.5;
  return row;
}

std::vector<std::string> with(const std::string& column, const std::string& text) {
  std::vector<std::string> fields = row_to_fields(full_row());
  for (size_t i = 0; i < fields.size(); ++i) {
    if (row_columns()[i] == column) fields[i] = text;
  }
  return fields;
}

TEST(Row, ColumnsAreTheSchema) {
  // The columns are those of docs/artifact-schema.md: a change here is a new schema version.
  const std::string first =
      "cell_id,backend,arm,model,dtype,quantization,cache,compile_mode,dynamic,padding,phase,"
      "scenario,prompt_id,batch,prompt_tokens,padded_tokens,new_tokens,repetition,block,"
      "order_index,status,error_class,cold,latency_ms,device_ms,ttft_ms,tokens,tokens_per_s,"
      "unique_graphs_delta,recompiles_delta,kernels_compiled_delta,graph_replays_delta,"
      "fallbacks_delta,sm_clock_mhz,temperature_c,power_w,throttled,output_hash,"
      "started_at_ns";
  const auto header = [](int64_t version) {
    const auto columns = row_columns(version);
    return csv_line({columns.begin(), columns.end()});
  };
  EXPECT_EQ(header(1), first + "\n");
  const std::string second = first +
                             ",graph_breaks_delta,recompile_limit_hits_delta,"
                             "cudagraph_captures_delta,cudagraph_skips_delta,fx_cache_hits_delta,"
                             "compile_ms_delta,fresh_cache";
  EXPECT_EQ(header(2), second + "\n");
  EXPECT_EQ(header(3), second + ",process\n");
  EXPECT_EQ(header(4), second + ",process,kernels_loaded_delta,energy_j\n");
  EXPECT_EQ(header(5), second +
                           ",process,kernels_loaded_delta,energy_j,yardstick_lookups_us,"
                           "yardstick_multiplies_us\n");
  EXPECT_EQ(header(6), second +
                           ",process,kernels_loaded_delta,energy_j,yardstick_lookups_us,"
                           "yardstick_multiplies_us,cached_tokens_delta,client_ms\n");
  EXPECT_EQ(header(7), header(6));  // of version 7 other files are new
  EXPECT_EQ(header(8), second +
                           ",process,kernels_loaded_delta,energy_j,yardstick_lookups_us,"
                           "yardstick_multiplies_us,cached_tokens_delta,client_ms,server_ms\n");
  EXPECT_EQ(kBundleSchemaVersion, 8);
}

TEST(Row, OfTheFirstVersionLacksTheLaterColumns) {
  const Row row = full_row();
  const std::vector<std::string> fields = row_to_fields(row);
  const std::vector<std::string_view> first(fields.begin(), fields.begin() + 39);
  TextPool texts;
  const auto back = row_from_fields(first, texts, "t", 1);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->started_at_ns, row.started_at_ns);
  EXPECT_FALSE(back->counts[Counter::kGraphBreaks] || back->counts[Counter::kRecompileLimitHits] ||
               back->counts[Counter::kCudagraphCaptures] ||
               back->counts[Counter::kCudagraphSkips] || back->counts[Counter::kFxCacheHits] ||
               back->compile_ms_delta || back->fresh_cache);
  EXPECT_EQ(row_from_fields(first, texts, "t").error().message, "t: expected 54 columns, found 39");
  const std::vector<std::string_view> all(fields.begin(), fields.end());
  EXPECT_EQ(row_from_fields(all, texts, "t", 1).error().message,
            "t: expected 39 columns, found 54");
}

TEST(Row, OfTheFourthVersionLacksTheYardstick) {
  const std::vector<std::string> fields = row_to_fields(full_row());
  const std::vector<std::string_view> fourth(fields.begin(), fields.begin() + 49);
  TextPool texts;
  const auto back = row_from_fields(fourth, texts, "t", 4);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->energy_j, 12.25);
  EXPECT_FALSE(back->yardstick_lookups_us || back->yardstick_multiplies_us);
}

TEST(Row, OfTheThirdVersionLacksLoadedKernelsAndEnergy) {
  const std::vector<std::string> fields = row_to_fields(full_row());
  const std::vector<std::string_view> third(fields.begin(), fields.begin() + 47);
  TextPool texts;
  const auto back = row_from_fields(third, texts, "t", 3);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->process.value_or(-1), 2);
  EXPECT_FALSE(back->counts[Counter::kKernelsLoaded] || back->energy_j);
}

TEST(Row, OfTheSecondVersionLacksTheProcess) {
  const Row row = full_row();
  const std::vector<std::string> fields = row_to_fields(row);
  const std::vector<std::string_view> second(fields.begin(), fields.begin() + 46);
  TextPool texts;
  const auto back = row_from_fields(second, texts, "t", 2);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->fresh_cache, true);
  EXPECT_FALSE(back->process) << "what an old row doesn't say is absent, not process 0";
  const std::vector<std::string_view> all(fields.begin(), fields.end());
  EXPECT_EQ(row_from_fields(all, texts, "t", 2).error().message,
            "t: expected 46 columns, found 54");
}

TEST(Row, SurvivesTheWayThroughCsv) {
  const std::string text = csv_line(row_to_fields(full_row()));
  CsvReader reader(text, "t");
  EXPECT_EQ(row_from_fields(*reader.next(), "t"), full_row());
}

TEST(Row, FieldsReadAsTheSchemaSays) {
  const std::vector<std::string> fields = row_to_fields(full_row());
  const auto field = [&](const std::string& column) {
    for (size_t i = 0; i < fields.size(); ++i) {
      if (row_columns()[i] == column) return fields[i];
    }
    return std::string("no such column");
  };
  EXPECT_EQ(field("phase"), "e2e_kv");
  EXPECT_EQ(field("status"), "false_success");
  EXPECT_EQ(field("cold"), "true");
  EXPECT_EQ(field("throttled"), "false");
  EXPECT_EQ(field("latency_ms"), "0.1");
  EXPECT_EQ(field("repetition"), "-3");
}

TEST(Row, AbsentIsEmptyAndStaysAbsent) {
  Row row = full_row();
  row.latency_ms.reset();
  row.tokens.reset();
  row.throttled.reset();
  row.counts[Counter::kFxCacheHits].reset();
  row.compile_ms_delta.reset();
  row.fresh_cache.reset();
  row.power_w = std::nan("");
  row.temperature_c = std::numeric_limits<double>::infinity();
  const auto back = row_from_fields(row_to_fields(row), "t");
  ASSERT_TRUE(back);
  EXPECT_FALSE(back->latency_ms || back->tokens || back->throttled);
  EXPECT_FALSE(back->counts[Counter::kFxCacheHits] || back->compile_ms_delta || back->fresh_cache);
  EXPECT_EQ(back->counts[Counter::kRecompileLimitHits], 0);
  EXPECT_FALSE(back->power_w || back->temperature_c) << "not a number is never written";
  EXPECT_EQ(back->counts[Counter::kRecompiles], 0) << "zero is a value";
}

TEST(Row, NumbersRoundTripExactly) {
  Random random(7);
  for (int i = 0; i < 2000; ++i) {
    Row row = full_row();
    row.latency_ms = std::ldexp(random.uniform(), static_cast<int>(random.below(2000)) - 1000);
    EXPECT_EQ(row_from_fields(row_to_fields(row), "t")->latency_ms, row.latency_ms);
  }
}

TEST(Row, NamesOfPhasesAndStatuses) {
  for (Phase phase : kPhases) EXPECT_EQ(parse_phase(phase_name(phase)), phase);
  for (const char* name : {"ok", "error", "crash", "timeout", "oom", "false_success"}) {
    EXPECT_EQ(row_status_name(*parse_row_status(name)), name);
  }
  EXPECT_FALSE(parse_phase("decode") || parse_phase(""));
  EXPECT_FALSE(parse_row_status("OK") || parse_row_status(""));
}

TEST(Row, WhatDoesNotFitNamesItsColumn) {
  const std::pair<const char*, const char*> cases[] = {
      {"phase", "decode"},
      {"status", "fine"},
      {"cold", "yes"},
      {"cold", ""},
      {"batch", "1.5"},
      {"batch", "0"},
      {"batch", ""},
      {"repetition", "1 "},
      {"order_index", "-1"},
      {"latency_ms", "nan"},
      {"latency_ms", "inf"},
      {"latency_ms", "1,0"},
      {"latency_ms", "-1"},
      {"latency_ms", "0x1p3"},
      {"tokens", "99999999999999999999"},
      {"throttled", "0"},
      {"tokens_per_s", "1e999"},
      {"started_at_ns", "now"},
      {"cell_id", ""},
      {"arm", ""},
      {"tokens", "-5"},
      {"ttft_ms", "12 ms"},
      {"recompiles_delta", "-1"},
      {"graph_breaks_delta", "-1"},
      {"fx_cache_hits_delta", "1.5"},
      {"cudagraph_skips_delta", "99999999999999999999"},
      {"compile_ms_delta", "-0.5"},
      {"fresh_cache", "1"},
      {"process", "-1"},
      {"process", "first"},
      // Numbers that would overflow sums and products over a bundle's rows.
      {"batch", "1000000001"},
      {"prompt_tokens", "9223372036854775807"},
      {"padded_tokens", "9223372036854775807"},
      {"new_tokens", "9223372036854775807"},
      {"repetition", "9223372036854775807"},
      {"repetition", "-9223372036854775808"},
      {"block", "9223372036854775807"},
      {"order_index", "9223372036854775807"},
      {"process", "1000000000000001"},
      {"unique_graphs_delta", "9223372036854775807"},
  };
  for (const auto& [column, text] : cases) {
    const auto row = row_from_fields(with(column, text), "prefill/metrics.csv line 7");
    ASSERT_FALSE(row) << column << "=" << text;
    EXPECT_EQ(row.error().kind, ErrorKind::kBadInput);
    EXPECT_THAT(row.error().message, HasSubstr(std::string("prefill/metrics.csv line 7 column ") +
                                               column + ": expected"));
  }
}

TEST(Row, AWrongCountOfColumnsIsAnError) {
  std::vector<std::string> fields = row_to_fields(full_row());
  fields.pop_back();
  EXPECT_EQ(row_from_fields(fields, "t").error().message, "t: expected 54 columns, found 53");
}

}  // namespace
}  // namespace assay
