// Each column, unit and rule that a mapping may have arrives in its place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "import/import_fixture.h"

namespace assay {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kSince = "2026-11-25T09:55:10.25+01:00";

TEST(MappedColumns, EachFieldOfARowHasItsColumn) {
  const auto made = rows_of_text(
      fmt::format("a,b,m,d,q,c,cm,dy,pa,ph,s,ba,pt,pp,nt,t_us,f_s,g_ns,n,id,at\n"
                  "x,be,mo,float16,q4,static,default,auto,global,e2e_kv,sc,2,80,96,4,5000,0.002,"
                  "3000000,8,p1,{}\n",
                  kSince),
      "columns: {arm: a, backend: b, model: m, dtype: d, quantization: q, cache: c, "
      "compile_mode: cm, dynamic: dy, padding: pa, phase: ph, scenario: s, batch: ba, "
      "prompt_tokens: pt, padded_tokens: pp, new_tokens: nt, latency: t_us, ttft: f_s, "
      "device_time: g_ns, tokens: n, prompt_id: id, started_at: at}\n");
  ASSERT_TRUE(made) << made.error().message;
  ASSERT_EQ(made->rows.size(), 1U);
  const Row& row = made->rows[0];
  EXPECT_EQ(row.arm, "x");
  EXPECT_EQ(row.backend, "be");
  EXPECT_EQ(row.model, "mo");
  EXPECT_EQ(row.dtype, "fp16");
  EXPECT_EQ(row.quantization, "q4");
  EXPECT_EQ(row.cache, "static");
  EXPECT_EQ(row.compile_mode, "default");
  EXPECT_EQ(row.dynamic, "auto");
  EXPECT_EQ(row.padding, "global");
  EXPECT_EQ(row.phase, Phase::kE2eKv);
  EXPECT_EQ(row.scenario, "sc");
  EXPECT_EQ(row.prompt_id, "p1");
  EXPECT_EQ(row.batch, 2);
  EXPECT_EQ(row.prompt_tokens, 80);
  EXPECT_EQ(row.padded_tokens, 96);
  EXPECT_EQ(row.new_tokens, 4);
  EXPECT_EQ(*row.latency_ms, 5);
  EXPECT_EQ(*row.ttft_ms, 2);
  EXPECT_EQ(*row.device_ms, 3);
  EXPECT_EQ(*row.tokens, 8);
  EXPECT_EQ(*row.tokens_per_s, 1600) << "8 tokens in 5 ms";
  EXPECT_EQ(row.started_at_ns, 1'795'596'910'250'000'000);
}

TEST(MappedColumns, AStartThatIsNoTimeIsNamed) {
  const char* const mapping = "columns: {latency: t_ms, started_at: at}\n";
  const auto garbage = rows_of_text("t_ms,at\n5,yesterday\n", mapping);
  ASSERT_FALSE(garbage);
  EXPECT_THAT(garbage.error().message,
              HasSubstr("column \"at\": expected a time such as 2026-11-25T09:55:10Z, found "
                        "\"yesterday\""));
  const auto none = rows_of_text("t_ms,at\n5,\n", mapping);
  ASSERT_TRUE(none) << none.error().message;
  EXPECT_EQ(none->rows[0].started_at_ns, 0) << "docs/import.md: the file has no time";
}

TEST(MappedColumns, TheIdentitysFieldsHaveTheirs) {
  const auto imported =
      import_text("t_ms,de,cg,fb,sha\n5,Example GPU,triton 3.6,torch 2.11,abc\n",
                  "columns: {latency: t_ms, device: de, code_generator: cg, framework_build: fb, "
                  "code_sha: sha}\n");
  ASSERT_TRUE(imported) << imported.error().message;
  const RunFacts& facts = imported->runs[0].facts;
  EXPECT_EQ(facts.text(ImportField::kDevice), "Example GPU");
  EXPECT_EQ(facts.text(ImportField::kCodeGenerator), "triton 3.6");
  EXPECT_EQ(facts.text(ImportField::kFrameworkBuild), "torch 2.11");
  EXPECT_EQ(facts.text(ImportField::kCodeSha), "abc");
}

TEST(MappedColumns, EveryUnitIsConvertedWhereverItIsNamed) {
  for (const auto& [unit, ms] :
       {std::pair<const char*, double>{"ns", 2e-6}, {"us", 2e-3}, {"ms", 2}, {"s", 2e3}}) {
    for (const char* figure : {"latency", "latencies"}) {
      const std::string text = fmt::format("t_{},t\n2,2\n", unit);
      const auto named = rows_of_text(text, fmt::format("columns: {{{}: t_{}}}\n", figure, unit));
      ASSERT_TRUE(named) << named.error().message;
      EXPECT_DOUBLE_EQ(*named->rows[0].latency_ms, ms) << unit;
      const auto stated = rows_of_text(
          text, fmt::format("columns: {{{0}: t}}\nunits: {{{0}: {1}}}\n", figure, unit));
      ASSERT_TRUE(stated) << stated.error().message;
      EXPECT_DOUBLE_EQ(*stated->rows[0].latency_ms, ms) << unit;
    }
  }
}

TEST(MappedColumns, ARateIsOverTheBatchAndOfWhatItCounts) {
  const auto ms = [](const std::string& columns, const std::string& constants) {
    const auto made = rows_of_text(
        "rate,n\n100,40\n",
        fmt::format("columns: {{tokens_per_s: rate{}}}\nconstants: {{{}}}\n", columns, constants));
    return made ? made->rows[0].latency_ms.value_or(-1) : -2;
  };
  EXPECT_EQ(ms("", "phase: kv_decode, new_tokens: 50, batch: 2"), 1000);
  EXPECT_EQ(ms(", tokens: n", "phase: kv_decode, new_tokens: 50"), 400) << "of those produced";
  EXPECT_EQ(ms("", "phase: prefill, prompt_tokens: 80, new_tokens: 50"), 800);
  EXPECT_EQ(ms("", "phase: prefill, prompt_tokens: 80, batch: 3"), 2400);
}

TEST(MappedColumns, AMessageIsTheClassAndKeptWhole) {
  const std::string message = "RuntimeError: accessing tensor output of CUDAGraphs";
  const auto made = rows_of_text("t_ms,s,e\n,died,\"" + message + "\"\n,died,\n5,ok,\n",
                                 "columns: {latency: t_ms, status: s, error: e}\n"
                                 "status: {ok: ok, crash: died}\n");
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_THAT(statuses_of(*made), ElementsAre("crash " + message, "crash died", "ok"));
  EXPECT_THAT(made->cells[0].log, HasSubstr(message + "\n"));
  EXPECT_EQ(made->cells[0].failures[0].message, message);
}

TEST(MappedColumns, OtherWordsHaveTheStatusThatTheMappingGivesThem) {
  const auto made = rows_of_text("t_ms,s\n5,ok\n,timeout\n",
                                 "columns: {latency: t_ms, status: s}\n"
                                 "status: {ok: ok, other: oom}\n");
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_THAT(statuses_of(*made), ElementsAre("ok", "oom timeout"))
      << "also a word that is one of assay's";
}

TEST(MappedColumns, OrderBaselineAndNameAreTheMappings) {
  const auto imported = import_text("t_ms,a\n5,x\n5,y\n",
                                    "name: table\nbaseline: y\norder: shuffled\n"
                                    "columns: {latency: t_ms, arm: a}\n");
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_EQ(imported->name, "table");
  EXPECT_EQ(imported->baseline, "y");
  EXPECT_EQ(imported->order, "shuffled");
}

TEST(MappedColumns, WhatIsUnknownIsListedAndWhatHasNoMeaningIsNot) {
  const auto unknown = [](const std::string& constants) {
    const auto made =
        rows_of_text("t_ms\n5\n", "columns: {latency: t_ms}\nconstants: {" + constants + "}\n");
    return made ? made->unknown.begin()->second : std::set<std::string>();
  };
  EXPECT_THAT(unknown("model: m"), testing::IsSupersetOf({"dtype", "quantization", "dynamic"}));
  EXPECT_THAT(unknown("quantization: none"), Contains("dtype"));
  EXPECT_THAT(unknown("quantization: q4"), testing::Not(Contains("dtype")));
  EXPECT_THAT(unknown("compile_mode: eager"), testing::Not(Contains("dynamic")));
  EXPECT_THAT(unknown("compile_mode: default"), Contains("dynamic"));
}

TEST(MappedColumns, StandInsAreToldAndNoQuantizationIsNoWord) {
  const auto made = rows_of_text("t_ms,q\n5,none\n", "columns: {latency: t_ms, quantization: q}\n");
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->rows[0].quantization, "");
  EXPECT_EQ(made->stand_ins.at("phase"), "e2e_kv");
  EXPECT_EQ(made->stand_ins.at("batch"), "1");
  EXPECT_EQ(made->stand_ins.at("padding"), "none");
}

TEST(MappedColumns, ABackendThatIsCalledCompiledClaimsACompilerToo) {
  const auto made = rows_of_text("t_ms,b,a\n5,torch-compile,fast\n5,torch,slow\n",
                                 "columns: {latency: t_ms, backend: b, arm: a}\n");
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->cells[0].compile_mode, "compiled");
  EXPECT_EQ(made->cells[0].compiler.verdict, CompilerReal::kUnproven);
  EXPECT_EQ(made->cells[1].compile_mode, "");
}

}  // namespace
}  // namespace assay
