// One bundle that agrees with itself, and the many ways in which one of two places may be changed.
#include "crosscheck/crosscheck.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "crosscheck/honest_run.h"

namespace assay {
namespace {

using testing::HasSubstr;

std::vector<std::string> problems_of(HonestRun& run) {
  std::vector<std::string> all;
  for (const VerifyProblem& one : cross_check(run.bundle(), run.units())) {
    all.push_back(one.object + ": " + one.problem);
  }
  return all;
}

TEST(CrossCheck, AnHonestRunAgreesWithItself) {
  HonestRun run;
  EXPECT_THAT(problems_of(run), testing::IsEmpty());
}

struct Tampering {
  const char* what;
  std::function<void(HonestRun&)> change;
  const char* named;  // in the first problem
};

void expect_named(const std::vector<Tampering>& all) {
  for (const auto& [what, change, named] : all) {
    HonestRun run;
    change(run);
    const std::vector<std::string> found = problems_of(run);
    ASSERT_FALSE(found.empty()) << what;
    EXPECT_THAT(found.front(), HasSubstr(named)) << what;
  }
}

TEST(CrossCheck, TheIdentityIsHeldAgainstTheEnvironment) {
  const auto identity = [](const char* axis, const char* value) {
    return [=](HonestRun& run) { run.bundle().manifest["identity"][axis] = value; };
  };
  expect_named({
      {"another device", identity("device", "NVIDIA H200"),
       "manifest.json: expected identity.device \"Example CPU (family 6 model 1 stepping 2) x 2\" "
       "of environment.json, found \"NVIDIA H200\""},
      {"another compiler", identity("code_generator", "clang 19"), "identity.code_generator"},
      {"another build", identity("framework_build", "assay 0.2.0"), "identity.framework_build"},
      {"another commit", identity("code_sha", "b"), "identity.code_sha"},
      {"another processor",
       [](HonestRun& run) {
         run.bundle().sittings[0].environment["host"]["cpu"]["model"] = "Other CPU";
       },
       "identity.device \"Other CPU"},
      {"another machine in a later sitting",
       [](HonestRun& run) {
         Sitting later = run.bundle().sittings[0];
         later.environment["host"]["cpu"]["model"] = "Other CPU";
         run.bundle().sittings.push_back(later);
       },
       "of environment-2.json"},
      {"another cache",
       [](HonestRun& run) {
         run.bundle().manifest["identity"]["arms"]["eager"]["cache"] = "static";
       },
       "identity.arms.eager.cache as in study \"dynamic\", found \"static\""},
      {"an arm that is no arm",
       [](HonestRun& run) { run.bundle().manifest["identity"]["arms"]["x"] = Json::object(); },
       "expected arms of the study in identity.arms, found \"x\""},
      {"another GPU of an arm",
       [](HonestRun& run) {
         run.bundle().manifest["identity"]["arms"]["eager"]["device"] = "NVIDIA B200";
         run.bundle().environment["arms"]["eager"]["interpreter"] = {
             {"torch", "2.11"}, {"cuda_device", "NVIDIA H200"}};
       },
       "identity.arms.eager.device \"NVIDIA H200\" of environment.json: arms.eager"},
  });
}

TEST(CrossCheck, TheStudyIsHeldAgainstItsPlanAndItsRows) {
  const auto row = [](const std::function<void(Row&)>& change) {
    return [=](HonestRun& run) { change(run.row()); };
  };
  const auto yaml = [](const std::string& from, const std::string& to) {
    return [=](HonestRun& run) {
      std::string& text = run.bundle().study_yaml;
      text.replace(text.find(from), from.size(), to);
    };
  };
  const auto said = [](const char* name, const Json& value) {
    return [=](HonestRun& run) { run.bundle().manifest["study"][name] = value; };
  };
  const std::string place = "kv_decode/metrics.csv: cell c00";
  expect_named({
      {"another study", yaml("repetitions: 4", "repetitions: 6"), "study.repetitions \"6\""},
      {"another length", yaml("[10, 30]", "[10, 31]"), "plan_sha256 of the study's plan"},
      {"no study", yaml("name: honest", "nonsense: 1"), "study.yaml: expected the study that was "},
      {"another plan", [](HonestRun& run) { run.bundle().manifest["plan_sha256"] = "0"; },
       "plan_sha256"},
      {"another baseline", said("baseline", "compiled"), "study.baseline \"eager\""},
      {"another order", said("order", "sequential"), "study.order \"interleaved\""},
      {"fewer processes", said("processes", 5), "study.processes \"2\""},
      {"arms that change places",
       [](HonestRun& run) {
         Json& arms = run.bundle().manifest["study"]["arms"];
         std::swap(arms[0], arms[1]);
       },
       "expected the arms \"eager (native eager dynamic )"},
      {"a cell that isn't planned", row([](Row& one) { one.cell_id = "c99"; }), "cell_id"},
      {"another arm", row([](Row& one) { one.arm = "eager"; }), "arm \"compiled\", found"},
      {"another cache", row([](Row& one) { one.cache = "dynamic"; }), "cache \"static\""},
      {"another mode", row([](Row& one) { one.compile_mode = "eager"; }), "compile_mode"},
      {"another model", row([](Row& one) { one.model = "n"; }), "model \"m\", found \"n\""},
      {"another scenario", row([](Row& one) { one.scenario = "x"; }), "scenario \"two\""},
      {"another batch", row([](Row& one) { one.batch = 2; }), "expected batch 1 as planned"},
      {"more tokens", row([](Row& one) { one.new_tokens = 8; }), "expected new_tokens 4"},
      {"a longer prompt", row([](Row& one) { one.prompt_tokens = 400; }),
       "expected prompt_tokens 10 as planned, found 400"},
      {"another prompt", row([](Row& one) { one.prompt_id = "1"; }), "prompt_id \"0\""},
      {"odd padding", row([](Row& one) { one.padded_tokens = 33; }), "a multiple of 8, found 33"},
      {"another repetition", row([](Row& one) { one.repetition = 7; }), "expected repetition 0"},
      {"another block", row([](Row& one) { one.block = 3; }), "expected block 0"},
      {"another place", row([](Row& one) { one.order_index += 100; }), "expected order_index "},
      {"a unit that is left out",
       [](HonestRun& run) { run.units().erase(run.units().begin() + 2); },
       "commits.jsonl: expected "},
      {"units that change places",
       [](HonestRun& run) { std::swap(run.units()[1].index, run.units()[2].index); },
       "commits.jsonl: expected 1 row of unit 2 as planned, found 2"},
      {"a unit of no plan", [](HonestRun& run) { run.units().back().index = 999; },
       "commits.jsonl: expected units of the plan in their order, found 999"},
  });
}

TEST(CrossCheck, RowsAreHeldAgainstTheEvidence) {
  const auto evidence = [](const std::function<void(Evidence&)>& change) {
    return [=](HonestRun& run) { change(run.evidence()); };
  };
  expect_named({
      {"another cell", evidence([](Evidence& one) { one.cell_id = "c"; }), "cell_id as its rows"},
      {"another phase", evidence([](Evidence& one) { one.phase = Phase::kPrefill; }),
       "phase as its rows have it, \"kv_decode\", found \"prefill\""},
      {"another backend", evidence([](Evidence& one) { one.requested.backend = "torch"; }),
       "requested.backend as its rows have it, \"native\", found \"torch\""},
      {"another mode", evidence([](Evidence& one) { one.requested.mode = "eager"; }),
       "requested.mode"},
      {"another cache", evidence([](Evidence& one) { one.requested.cache = "dynamic"; }),
       "requested.cache"},
      {"another type", evidence([](Evidence& one) { one.worker->dtype = "bf16"; }),
       "worker.dtype as its rows have it, \"fp32\", found \"bf16\""},
      {"another model", evidence([](Evidence& one) { one.model_hash = "0"; }), "model_hash"},
      {"a process less", evidence([](Evidence& one) { one.processes.pop_back(); }),
       "expected process 1 of its rows among its processes, found none"},
      {"another verdict",
       evidence([](Evidence& one) { one.compiler_real = CompilerReal::kFallback; }),
       "expected compiler_real of one of its processes, found fallback"},
      {"another report", evidence([](Evidence& one) {
         one.reported = worker_report({{"compiler_real", "fallback"}});
       }),
       "expected reported.compiler_real yes as of process 0, found fallback"},
      {"fewer graphs",
       evidence([](Evidence& one) { (*one.processes[1].counters)[Counter::kUniqueGraphs] = 0; }),
       "expected unique_graphs of process 1 to be at least 1, which its rows added, found 0"},
      {"a failure without a row", evidence([](Evidence& one) {
         one.failures.push_back({0, 77, "crash", "SIGSEGV", ""});
       }),
       "crash (SIGSEGV) of repetition 77, which isn't there"},
      {"a failure whose row is ok", evidence([](Evidence& one) {
         one.failures.push_back({0, 1, "crash", "SIGSEGV", ""});
       }),
       "expected ok () of repetition 1 as its row says, found crash (SIGSEGV)"},
      {"no evidence", [](HonestRun& run) { run.bundle().evidence.erase(run.row().cell_id.str()); },
       "evidence.json: missing, and its cell has rows"},
  });
}

TEST(CrossCheck, AParityRecordIsHeldAgainstItsDifferenceAndItsNeighbours) {
  const auto parity = [](const char* name, const Json& value) {
    return [=](HonestRun& run) { run.parity()[name] = value; };
  };
  const Json difference = {{"sequence", 0}, {"position", 2}, {"expected", 5}, {"found", 6}};
  expect_named({
      {"passed with a difference", parity("first_difference", difference),
       "expected no first_difference of a parity that passed, found one"},
      {"passed with an error", parity("error", {{"arm", "eager"}}), "expected no error"},
      {"failed for nothing", parity("passed", false), "found neither"},
      {"no difference",
       [&](HonestRun& run) {
         run.parity()["passed"] = false;
         run.parity()["first_difference"] = difference;
         run.parity()["first_difference"]["found"] = 5;
       },
       "expected two tokens that differ"},
      {"a difference beyond its end",
       [&](HonestRun& run) {
         run.parity()["passed"] = false;
         run.parity()["first_difference"] = difference;
         run.parity()["first_difference"]["position"] = 5;
       },
       "within 5 generated tokens, found position 5"},
      {"fewer tokens", parity("generated_tokens", 1),
       "expected 5 generated tokens of a cell of 4 new tokens, found 1"},
      {"another baseline", parity("baseline_arm", "compiled"),
       "baseline_arm of the study, \"eager\""},
      {"no record", [](HonestRun& run) { run.bundle().parity.erase(run.row().cell_id.str()); },
       "parity.json: missing, and cells/"},
  });
}

TEST(CrossCheck, WhereTheBaselineGaveNoAnswerOtherArmsHaveNoRecord) {
  HonestRun run;
  Json& baseline = run.bundle().parity[run.row("eager").cell_id.str()];
  baseline["passed"] = nullptr;
  baseline["error"] = {{"arm", "eager"}, {"class", "crash"}, {"message", "SIGKILL"}};
  run.bundle().parity.erase(run.row("compiled").cell_id.str());
  EXPECT_THAT(problems_of(run), testing::IsEmpty());
}

TEST(CrossCheck, TimesRunForwardAndCountsFit) {
  const auto started = [](int64_t at) {
    return [=](HonestRun& run) { run.row().started_at_ns = at; };
  };
  const auto completion = [](const char* name, const Json& value) {
    return [=](HonestRun& run) { run.bundle().manifest["completion"][name] = value; };
  };
  expect_named({
      {"before the run", started(kStart_ns - 2'000'000'000), "expected a start from "},
      {"before the row before it", started(kStart_ns + 1), "expected a start from "},
      {"after the run", started(kStart_ns + 10'000 * kStep_ns),
       "expected a start before the run's"},
      {"a run that started later",
       [](HonestRun& run) { run.bundle().sittings[0].started_at_ns += 100 * kStep_ns; },
       "expected a start from "},
      {"another text", [](HonestRun& run) { run.bundle().manifest["started_at"] = "now"; },
       "started_at of started_at_ns \"20"},
      {"another count", completion("rows_by_status", {{"ok", 3}}), "completion.rows_by_status"},
  });
  HonestRun slow_clock;  // a step back that keeping the time takes
  slow_clock.row().started_at_ns -= kStep_ns + 1'000'000;
  EXPECT_THAT(problems_of(slow_clock), testing::IsEmpty());
}

TEST(CrossCheck, WhatAnOlderProgramOrAnotherToolLeftStandsAgainstLess) {
  HonestRun older;
  older.bundle().manifest["schema_version"] = 4;
  older.bundle().manifest["plan_sha256"] = "0";
  older.bundle().evidence.clear();
  EXPECT_THAT(problems_of(older), testing::IsEmpty());
  HonestRun unfinished;
  unfinished.bundle().complete = false;
  unfinished.bundle().manifest["plan_sha256"] = "0";
  EXPECT_THAT(problems_of(unfinished), testing::IsEmpty());
  // A run that is called an import has no import's plan.
  HonestRun called;
  called.bundle().manifest["identity"]["imported_from"] = "hyperfine";
  EXPECT_THAT(problems_of(called).front(), HasSubstr("study.yaml: expected the JSON of an import"));
}

TEST(CrossCheck, ManyProblemsOfOneFileAreSummedUp) {
  HonestRun run;
  for (int64_t i = 50; i < 60; ++i) {
    run.evidence().failures.push_back({0, i, "crash", "SIGSEGV", ""});
  }
  const auto found = problems_of(run);
  ASSERT_EQ(found.size(), 6u);
  EXPECT_THAT(found.back(), HasSubstr("evidence.json: 5 further problems"));
}

}  // namespace
}  // namespace assay
