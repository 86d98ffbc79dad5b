// Evidence as the harness and workers write it, and as they shouldn't.
#include "artifact/evidence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Every member, in the order of the file.
constexpr const char* kWhole =
    R"({"cell_id":"c000","phase":"kv_decode",)"
    R"("requested":{"backend":"torch","mode":"default","cache":"static","dynamic":"auto",)"
    R"("dtype":"fp16","threads":2,"options":{"device":"cuda"}},)"
    R"("model_hash":"ab","compiler_real":"fallback",)"
    R"("worker":{"name":"w","version":"1","protocol":1,"capabilities":{"profile":true},)"
    R"("dtype":"fp16","quantization":"q4","load_seconds":0.5,"prepare_seconds":null,)"
    R"("prepare_evidence":null,"weight_bytes":7,"threads":2},)"
    R"("reported":{"compiler_real":"fallback","fallback":"eager","counters":{"recompiles":2},)"
    R"("a member of the future":[1]},"reported_by":1,)"
    R"("processes":[{"process":0,"load_seconds":0.5,"prepare_seconds":null,)"
    R"("compiler_real":"unproven","counters":null,"placement":null,"memory":null,"lost":true},)"
    R"({"process":1,"load_seconds":0.25,"prepare_seconds":1.5,"compiler_real":"fallback",)"
    R"("counters":{"recompiles":3,"graph_replays":4},"placement":{"cpus_allowed":"0-3,8",)"
    R"("last_cpu":3,"numa_node":0,"resident_bytes":4096,"huge_page_bytes":0,)"
    R"("addresses_random":true,"address_randomisation":2,"locked_bytes":8192,)"
    R"("offsets":{"program":0,"heap":4096,"stack":16,"largest_file":null,)"
    R"("largest_memory":1048576}},)"
    R"("memory":{"cold_faults":{"rows":1,"minor":20,"major":3},)"
    R"("warm_faults":{"rows":10,"minor":0,"major":0}},"lost":false}],)"
    R"("read_limit":{"bytes_per_s":2e+10,"cache_bytes":33554432,"tolerance":0.25},)"
    R"("gpu_neighbours":[{"unit":2,"first_row":40,"rows":5,"pid":41,"process":"train",)"
    R"("memory_bytes":2000000000,"share":0.5}],"throttle_reasons":["power"],)"
    R"("failures":[{"unit":3,"repetition":-1,"status":"oom","class":"OOM","message":"a\nb"}],)"
    R"("stopping":{"rounds":4,"decided":true,"leader":"static","margin":0.03,"pairs":[)"
    R"({"arm":"eager","ratio":0.9,"interval":[0.8,0.95],"verdict":"faster"}]},)"
    R"("gate":{"verdict":"fallback","reason":"no GPU","fallback":"eager"},)"
    R"("read_bytes":{"16":40000000,"24":60000000},)"
    R"("operations":{"16":800000000},"matrix_limit":7.5e+14,)"
    R"("profile":{"error":{"class":"E","message":"m"}},"log_dropped_bytes":300000000})";

Result<Evidence> read(std::string_view text) {
  return evidence_from_json(*parse_json(text, "evidence"), "cells/c000/evidence.json");
}

TEST(EvidenceFile, SurvivesItsText) {
  const auto evidence = read(kWhole);
  ASSERT_TRUE(evidence) << evidence.error().message;
  EXPECT_EQ(to_json_line(evidence_to_json(*evidence)),
            to_json_line(*parse_json(kWhole, "evidence")));
  EXPECT_EQ(evidence->phase, Phase::kKvDecode);
  EXPECT_EQ(evidence->compiler_real, CompilerReal::kFallback);
  EXPECT_EQ(evidence->read_bytes.at(24), 60'000'000);
  EXPECT_EQ(evidence->count(Counter::kRecompiles), 2);
  EXPECT_EQ(evidence->most_counted(Counter::kRecompiles), 3) << "by process 1";
  EXPECT_EQ(evidence->most_counted(Counter::kGraphBreaks), std::nullopt);
}

TEST(EvidenceFile, CountersAndPlacementOfAProcessAreTyped) {
  const auto evidence = read(kWhole);
  ASSERT_TRUE(evidence) << evidence.error().message;
  EXPECT_EQ(evidence->processes[0].counters, std::nullopt);
  EXPECT_EQ(evidence->processes[0].placement, std::nullopt);
  const EvidenceProcess& second = evidence->processes[1];
  EXPECT_EQ(second.counters, Counts({{Counter::kRecompiles, 3}, {Counter::kGraphReplays, 4}}));
  EXPECT_EQ(second.placement, (Placement{"0-3,8", 3, 0, 4096, 0, true, 2, 8192,
                                         AddressOffsets{0, 4096, 16, std::nullopt, 1048576}}));
  ASSERT_TRUE(second.memory);
  EXPECT_EQ(second.memory->cold->minor, 20);
}

TEST(EvidenceFile, OfAnOlderProgramKeepsWhatIsKnownOfAProcess) {
  const auto evidence = read(R"({"processes":[{"process":0,
      "counters":{"recompiles":3,"graph_runs":4,"seconds":0.5,"note":"warm","fallbacks":null},
      "placement":{"last_cpu":1,"colour":"red"}},{"process":1}]})");
  ASSERT_TRUE(evidence) << evidence.error().message;
  EXPECT_EQ(evidence->processes[0].counters, Counts({{Counter::kRecompiles, 3}}));
  Placement placement;
  placement.last_cpu = 1;
  EXPECT_EQ(evidence->processes[0].placement, placement);
  EXPECT_FALSE(evidence->processes[1].counters || evidence->processes[1].placement);
}

TEST(EvidenceFile, MemoryOfAnyWorkerKeepsWhatIsACount) {
  const auto read = [](const char* text) { return memory_from_json(*parse_json(text, "t")); };
  EXPECT_FALSE(read("[]"));
  EXPECT_FALSE(read("null"));
  const auto memory = read(R"({"held_bytes":-1,"cold_faults":{"rows":1,"minor":"two","major":0},
      "warm_faults":{"rows":3,"minor":4,"major":5}})");
  ASSERT_TRUE(memory);
  EXPECT_FALSE(memory->cold);
  EXPECT_EQ(memory->warm->major, 5);
}

TEST(EvidenceFile, OfAFreshCellSaysNothing) {
  const Json json = evidence_to_json(Evidence());
  EXPECT_EQ(json["compiler_real"], "unproven");
  EXPECT_TRUE(json["worker"].is_null() && json["reported"].is_null());
  EXPECT_FALSE(json.contains("gate") || json.contains("read_bytes") || json.contains("profile"));
  EXPECT_TRUE(read(to_json_line(json)));
  EXPECT_TRUE(read("{}")) << "bundles of older versions lack members";
}

TEST(EvidenceFile, OfAnotherShapeIsRefusedByName) {
  const std::pair<const char*, const char*> refused[] = {
      {"[]", "cells/c000/evidence.json: expected an object, found []"},
      {R"({"phase":"warm"})",
       "cells/c000/evidence.json: expected one of \"prefill\", \"kv_decode\", \"e2e_kv\", "
       "\"load\" at phase, "
       "found \"warm\""},
      {R"({"read_limit":{"bytes_per_s":"much"}})",
       "cells/c000/evidence.json: expected a number at read_limit.bytes_per_s, found \"much\""},
      {R"({"read_limit":{"cache_bytes":-1}})",
       "cells/c000/evidence.json: expected a count at read_limit.cache_bytes, found -1"},
      {R"({"processes":[{"process":0},{"process":"1"}]})",
       "cells/c000/evidence.json: expected an integer at processes[1].process, found \"1\""},
      {R"({"processes":[{}]})",
       "cells/c000/evidence.json: expected a value at processes[0].process, found nothing"},
      {R"({"processes":[{"process":0,"counters":[]}]})",
       "cells/c000/evidence.json: expected an object at processes[0].counters, found []"},
      {R"({"processes":[{"process":0,"counters":{"recompiles":-1}}]})",
       "cells/c000/evidence.json: expected a whole number from 0 on at "
       "processes[0].counters.recompiles, found -1"},
      {R"({"processes":[{"process":0,"counters":{"recompiles":18446744073709551615}}]})",
       "cells/c000/evidence.json: expected a whole number from 0 on at "
       "processes[0].counters.recompiles, found 18446744073709551615"},
      {R"({"processes":[{"process":0,"placement":"here"}]})",
       "cells/c000/evidence.json: expected an object at processes[0].placement, found \"here\""},
      {R"({"processes":[{"process":0,"placement":{"last_cpu":-1}}]})",
       "cells/c000/evidence.json: expected a count at processes[0].placement.last_cpu, found -1"},
      {R"({"processes":[{"process":0,"placement":{"addresses_random":1}}]})",
       "cells/c000/evidence.json: expected true or false at processes[0].placement."
       "addresses_random, found 1"},
      {R"({"failures":{}})", "cells/c000/evidence.json: expected an array at failures, found {}"},
      {R"({"read_bytes":{"long":1}})",
       "cells/c000/evidence.json: expected an integer for a member's name at read_bytes, found "
       "\"long\""},
      {R"({"reported_by":99999999999999999999})",
       "cells/c000/evidence.json: expected an integer at reported_by, found 1e+20"},
      {R"({"gate":{"reason":[]}})",
       "cells/c000/evidence.json: expected a text at gate.reason, found []"}};
  for (const auto& [text, message] : refused) {
    const auto evidence = read(text);
    ASSERT_FALSE(evidence) << text;
    EXPECT_EQ(evidence.error().message, message);
  }
}

TEST(WorkerReports, OfACompiledCell) {
  const auto report = worker_report(*parse_json(R"({"compiler_real": "yes",
      "reasons": ["3 kernels were loaded and ran"], "fallback": false, "fallback_error": null,
      "counters": {"unique_graphs": 3, "recompiles": 2, "seconds": 0.5},
      "recompiles": [{"guard": "q_len", "expected": 16, "found": 24, "seconds": 0.4},
                     {"guard": "cache", "expected": "static", "found": "dynamic"}],
      "graph_breaks": [{"text": "a call of print"}], "actual": {"device": "cuda:0"},
      "toolchain": {"name": "triton", "version": 3, "triton": {"version": "3.6.0"}},
      "kernels": {"compile_seconds": 1.5}, "read_bandwidth": {"bytes_per_s": 4e12}})",
                                                "evidence"));
  EXPECT_THAT(report.reasons, ElementsAre("3 kernels were loaded and ran"));
  EXPECT_EQ(report.fallback, "");
  EXPECT_EQ(report.fallback_error, "");
  EXPECT_FALSE(report.ran_as_other_mode());
  EXPECT_EQ(report.counts, Counts({{Counter::kUniqueGraphs, 3}, {Counter::kRecompiles, 2}}));
  ASSERT_EQ(report.recompiles.size(), 2u);
  EXPECT_EQ(report.recompiles[0].expected, "16");
  EXPECT_EQ(report.recompiles[0].found, "24");
  EXPECT_EQ(report.recompiles[0].seconds, 0.4);
  EXPECT_EQ(report.recompiles[1].found, "dynamic");
  EXPECT_EQ(report.first_graph_break, "a call of print");
  EXPECT_EQ(report.device, "cuda:0");
  EXPECT_EQ(report.code_generator, "triton 3");
  EXPECT_EQ(report.triton_version, "3.6.0");
  EXPECT_EQ(report.compile_seconds, 1.5);
  EXPECT_EQ(report.process_compile_seconds, 1.5) << "of a worker that counts by process";
  Json of_units = report.whole;
  of_units["counters_of_process"] = {{"compile_ns", 2'250'000'000}};
  EXPECT_EQ(worker_report(of_units).process_compile_seconds, 2.25);
  EXPECT_EQ(report.read_bytes_per_s, 4e12);
}

TEST(WorkerReports, ThatSayLittleProveNothing) {
  for (const char* text :
       {"{}", R"({"counters": [], "recompiles": {}, "reasons": "none", "graph_breaks": [1]})",
        R"({"counters": {"a": "b"}, "recompiles": [1, {}], "fallback": ["eager"]})",
        R"({"actual": "cuda", "toolchain": [], "kernels": {"compile_seconds": "1"}})"}) {
    const WorkerReport report = worker_report(*parse_json(text, "evidence"));
    EXPECT_THAT(report.recompiles, IsEmpty()) << text;
    EXPECT_THAT(report.counts, IsEmpty());
    EXPECT_EQ(report.fallback + report.first_graph_break + report.device, "");
    EXPECT_FALSE(report.compile_seconds);
  }
  for (const char* verdict : {"1", "\"surely\"", "null", "[]"}) {
    EXPECT_EQ(compiler_real_of(*parse_json(verdict, "verdict")), CompilerReal::kUnproven);
    const auto evidence = read(fmt::format(R"({{"compiler_real":{}}})", verdict));
    ASSERT_TRUE(evidence) << "any worker may have said it";
    EXPECT_EQ(evidence->compiler_real, CompilerReal::kUnproven);
  }
}

}  // namespace
}  // namespace assay
