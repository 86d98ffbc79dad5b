// Each verdict of the first four gates: a bundle on which it is given, and one beside it on which
// it isn't.
#include "gates/gates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "gates/honest_bundle.h"

namespace assay {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

using GateFunction = JudgedGate (*)(const BundleFacts&, const GateScope&);

SpeedClaim faster_in(std::optional<Phase> phase) {
  SpeedClaim claim;
  claim.arm = "compiled-static";
  claim.other = "eager-dynamic";
  claim.phase = phase;
  return claim;
}

JudgedGate judged(GateFunction gate, HonestBundle& bundle,
                  const std::optional<SpeedClaim>& claim = {},
                  std::vector<VerifyProblem> problems = {}) {
  const BundleFacts facts = bundle.facts(claim, std::move(problems));
  return gate(facts, scope_of(facts, claim));
}

const GateCheck& check_of(const JudgedGate& gate, const std::string& name) {
  const auto at = std::ranges::find(gate.checks, name, &GateCheck::name);
  EXPECT_NE(at, gate.checks.end()) << name;
  return at == gate.checks.end() ? gate.checks.front() : *at;
}

// The finding of the first check that has the gate's verdict; empty: the gate has no check.
std::string found_by(const JudgedGate& gate) {
  const auto at = std::ranges::find(gate.checks, gate.verdict(), &GateCheck::verdict);
  return at == gate.checks.end() ? "" : at->found;
}

// With this defect the check fails, or is open, names the deciding place, and is the only one that
// does; without it every check passes.
void expect_decided(GateFunction gate, const std::string& check, GateVerdict verdict,
                    const std::function<void(HonestBundle&)>& defect, const std::string& decider,
                    const HonestStudy& study = {}) {
  HonestBundle whole(study);
  const JudgedGate fine = judged(gate, whole);
  EXPECT_EQ(fine.verdict(), GateVerdict::kPass) << found_by(fine);
  HonestBundle broken(study);
  defect(broken);
  const JudgedGate said = judged(gate, broken);
  EXPECT_EQ(said.verdict(), verdict) << check;
  const GateCheck& one = check_of(said, check);
  EXPECT_EQ(one.verdict, verdict) << check << ": " << one.found;
  EXPECT_THAT(one.decided_by, Contains(HasSubstr(decider))) << one.found;
  for (const GateCheck& other : said.checks) {
    if (other.name != check) {
      EXPECT_EQ(other.verdict, GateVerdict::kPass) << other.name << ": " << other.found;
    }
  }
}

TEST(PhaseGate, AClaimWithoutAPhaseFails) {
  HonestBundle bundle;
  EXPECT_EQ(judged(judge_phases, bundle, faster_in(Phase::kKvDecode)).verdict(),
            GateVerdict::kPass);
  const JudgedGate gate = judged(judge_phases, bundle, faster_in({}));
  EXPECT_EQ(gate.verdict(), GateVerdict::kFail);
  EXPECT_THAT(check_of(gate, "claims").decided_by,
              ElementsAre("claim: compiled-static faster than eager-dynamic"));
}

TEST(PhaseGate, RowsOfTwoPhasesFail) {
  expect_decided(
      judge_phases, "rows", GateVerdict::kFail,
      [](HonestBundle& bundle) {
        bundle.made.row(bundle.cell("eager-dynamic", Phase::kKvDecode), 7).ttft_ms = 3;
      },
      "repetition 7");
}

TEST(PhaseGate, ADecodeWithoutTokensFails) {
  HonestBundle bundle;
  for (Row& row : bundle.made.raw().rows) {
    if (row.phase == Phase::kKvDecode) row.new_tokens = 0;
  }
  const JudgedGate gate = judged(judge_phases, bundle);
  EXPECT_THAT(check_of(gate, "rows").found, HasSubstr("decodes no token"));
  EXPECT_EQ(gate.verdict(), GateVerdict::kFail);
}

TEST(PhaseGate, FiguresOfBothPhasesNeedThePhasesByThemselves) {
  HonestBundle whole({.phases = {Phase::kPrefill, Phase::kKvDecode, Phase::kE2eKv}});
  EXPECT_EQ(judged(judge_phases, whole).verdict(), GateVerdict::kPass);
  HonestBundle lacking({.phases = {Phase::kPrefill, Phase::kE2eKv}});
  const JudgedGate gate = judged(judge_phases, lacking);
  EXPECT_EQ(gate.verdict(), GateVerdict::kFail);
  EXPECT_THAT(check_of(gate, "parts").decided_by, Contains(HasSubstr("no rows in kv_decode")));
  EXPECT_EQ(judged(judge_phases, lacking, faster_in(Phase::kPrefill)).verdict(),
            GateVerdict::kPass);
  // Nor do a decode of other lengths, or one that lost every row, stand for the one within.
  const auto parts = [](const std::function<void(Row&)>& change) {
    HonestBundle bundle({.phases = {Phase::kPrefill, Phase::kKvDecode, Phase::kE2eKv}});
    for (Row& row : bundle.made.raw().rows) {
      if (row.phase == Phase::kKvDecode) change(row);
    }
    return check_of(judged(judge_phases, bundle), "parts").verdict;
  };
  EXPECT_EQ(parts([](Row&) {}), GateVerdict::kPass);
  EXPECT_EQ(parts([](Row& row) { row.new_tokens = 7; }), GateVerdict::kFail);
  EXPECT_EQ(parts([](Row& row) {
              row.status = RowStatus::kCrash;
              row.error_class = "SIGSEGV";
              row.latency_ms.reset();
            }),
            GateVerdict::kFail);
}

TEST(PhaseGate, ABundleThatClaimsNothingIsNotDecided) {
  HonestBundle equal({.compiled_share = 1, .phases = {Phase::kKvDecode}, .noise = 0.3});
  const JudgedGate gate = judged(judge_phases, equal);
  EXPECT_EQ(gate.verdict(), GateVerdict::kNotDecided);
  EXPECT_THAT(check_of(gate, "claims").found, HasSubstr("no decision names an arm"));
}

TEST(EnvironmentGate, EachAxisHasToBeStated) {
  for (const char* axis : {"device", "code_generator", "framework_build"}) {
    expect_decided(
        judge_environment, "identity", GateVerdict::kFail,
        [&](HonestBundle& bundle) { bundle.identity().erase(axis); }, axis);
  }
  expect_decided(
      judge_environment, "identity", GateVerdict::kFail,
      [&](HonestBundle& bundle) { bundle.identity()["device"] = "unknown processor x 2"; },
      "identity.arms.eager-dynamic.device");
}

TEST(EnvironmentGate, CacheAndModeAreAxes) {
  HonestBundle bundle;
  for (Row& row : bundle.made.raw().rows) {
    if (row.arm == "eager-dynamic") row.cache = row.compile_mode = "";
  }
  const JudgedGate gate = judged(judge_environment, bundle);
  EXPECT_THAT(check_of(gate, "identity").decided_by,
              Contains("manifest.json: identity.arms.eager-dynamic.cache"));
  EXPECT_THAT(check_of(gate, "identity").decided_by,
              Contains("manifest.json: identity.arms.eager-dynamic.compile_mode"));
}

TEST(EnvironmentGate, ADirtyCommitIsNotDecidedAndNoneFails) {
  expect_decided(
      judge_environment, "commit", GateVerdict::kNotDecided,
      [](HonestBundle& bundle) {
        bundle.identity()["code_sha"] = std::string(kHonestSha) + "-dirty";
      },
      "-dirty");
  HonestBundle none;
  none.identity().erase("code_sha");
  const JudgedGate gate = judged(judge_environment, none);
  EXPECT_EQ(check_of(gate, "commit").verdict, GateVerdict::kFail);
  EXPECT_EQ(check_of(gate, "identity").verdict, GateVerdict::kFail);
}

TEST(EnvironmentGate, TheWorkerThatRanHasToSpeak) {
  const auto cell = [](HonestBundle& bundle) {
    return bundle.cell("eager-dynamic", Phase::kPrefill);
  };
  expect_decided(
      judge_environment, "worker", GateVerdict::kFail,
      [&](HonestBundle& bundle) { bundle.made.evidence(cell(bundle)).erase("worker"); },
      "evidence.json: worker");
  expect_decided(
      judge_environment, "worker", GateVerdict::kFail,
      [&](HonestBundle& bundle) { bundle.made.evidence(cell(bundle)).erase("reported"); },
      "evidence.json: reported");
  expect_decided(
      judge_environment, "worker", GateVerdict::kFail,
      [&](HonestBundle& bundle) { bundle.made.evidence(cell(bundle))["processes"].erase(3); },
      "rows name process 3");
  expect_decided(
      judge_environment, "worker", GateVerdict::kFail,
      [&](HonestBundle& bundle) { bundle.made.drop_evidence(cell(bundle)); },
      "evidence.json: missing");
}

TEST(EnvironmentGate, TheWorkersWordIsHeldAgainstTheIdentity) {
  expect_decided(
      judge_environment, "agreement", GateVerdict::kFail,
      [](HonestBundle& bundle) {
        bundle.made.reported(bundle.cell("compiled-static", Phase::kKvDecode))["actual"]["cache"] =
            "dynamic";
      },
      "reported.actual.cache: expected \"static\", found \"dynamic\"");
  expect_decided(
      judge_environment, "agreement", GateVerdict::kFail,
      [](HonestBundle& bundle) {
        bundle.made.reported(bundle.cell("eager-dynamic", Phase::kKvDecode)).erase("actual");
      },
      "neither toolchain nor actual");
}

// Makes the bundle's compiled arm one of torch on a GPU.
void make_torch(HonestBundle& bundle, const std::string& triton) {
  Json& arm = bundle.identity()["arms"]["compiled-static"];
  arm["device"] = "NVIDIA H200";
  arm["framework_build"] = "torch 2.11.0 transformers 5.17.0 python 3.12.3";
  arm["code_generator"] = "triton 3.6.0";
  for (Row& row : bundle.made.raw().rows) {
    if (row.arm != "compiled-static") continue;
    row.backend = "torch";
    Json& reported = bundle.made.reported(row.cell_id.str());
    reported["toolchain"] = {{"name", "torch"},
                             {"version", "2.11.0"},
                             {"sha256", hash_of('c')},
                             {"triton", {{"version", triton}, {"sha256", hash_of('d')}}},
                             {"cuda", {{"device", "NVIDIA H200"}}}};
  }
}

TEST(EnvironmentGate, ATorchWorkerConfirmsVersionsAndDevice) {
  HonestBundle fine;
  make_torch(fine, "3.6.0");
  EXPECT_EQ(judged(judge_environment, fine).verdict(), GateVerdict::kPass);
  HonestBundle other_triton;
  make_torch(other_triton, "3.5.1");
  EXPECT_THAT(check_of(judged(judge_environment, other_triton), "agreement").found,
              HasSubstr("expected \"triton 3.6.0\", found \"3.5.1\""));
  HonestBundle other_torch;
  make_torch(other_torch, "3.6.0");
  other_torch.identity()["arms"]["compiled-static"]["framework_build"] = "torch 2.11.01";
  EXPECT_EQ(check_of(judged(judge_environment, other_torch), "agreement").verdict,
            GateVerdict::kFail);
  HonestBundle other_gpu;
  make_torch(other_gpu, "3.6.0");
  other_gpu.identity()["arms"]["compiled-static"]["device"] = "NVIDIA H100";
  EXPECT_EQ(check_of(judged(judge_environment, other_gpu), "agreement").verdict,
            GateVerdict::kFail);
}

TEST(EnvironmentGate, ToolchainsAreHashed) {
  expect_decided(
      judge_environment, "toolchain", GateVerdict::kFail,
      [](HonestBundle& bundle) { bundle.made.raw().environment.erase("program_sha256"); },
      "program_sha256");
  expect_decided(
      judge_environment, "toolchain", GateVerdict::kFail,
      [](HonestBundle& bundle) {
        bundle.made.reported(bundle.cell("compiled-static", Phase::kKvDecode))["toolchain"].erase(
            "sha256");
      },
      "reported.toolchain.sha256");
  HonestBundle torch;
  make_torch(torch, "3.6.0");
  torch.made.reported(
      torch.cell("compiled-static", Phase::kKvDecode))["toolchain"]["triton"]["sha256"] = "short";
  EXPECT_THAT(check_of(judged(judge_environment, torch), "toolchain").decided_by,
              Contains(HasSubstr("toolchain.triton.sha256")));
}

TEST(EnvironmentGate, SittingsOfDifferentEnvironmentsFail) {
  HonestBundle bundle;
  BundleFacts facts = bundle.facts();
  const auto verdict = [&] {
    return check_of(judge_environment(facts, scope_of(facts, {})), "sittings").verdict;
  };
  facts.findings.sittings = {{"2026-11-24", 0, 100, {}}, {"2026-11-25", 100, 156, {}}};
  EXPECT_EQ(verdict(), GateVerdict::kPass);
  facts.findings.sittings[1].differs = {{"gpus.uuid", "GPU-1", "GPU-2"}};
  EXPECT_EQ(verdict(), GateVerdict::kFail);
  facts.findings.sittings[1].rows = 0;
  EXPECT_EQ(verdict(), GateVerdict::kPass) << "it measured nothing";
}

TEST(ArtifactGate, DamageFails) {
  HonestBundle bundle;
  EXPECT_EQ(judged(judge_artifacts, bundle).verdict(), GateVerdict::kPass);
  const JudgedGate gate =
      judged(judge_artifacts, bundle, {}, {{"prefill/metrics.csv", "expected sha256 a, found b"}});
  EXPECT_EQ(gate.verdict(), GateVerdict::kFail);
  EXPECT_THAT(check_of(gate, "files").decided_by,
              ElementsAre("prefill/metrics.csv: expected sha256 a, found b"));
}

TEST(ArtifactGate, RowsWithoutTheirBundleFail) {
  HonestBundle bundle;
  bundle.made.raw().rows_alone = true;
  EXPECT_EQ(check_of(judged(judge_artifacts, bundle), "files").verdict, GateVerdict::kFail);
}

TEST(ArtifactGate, ACompiledCellWithoutProofFails) {
  const auto cell = [](HonestBundle& bundle) {
    return bundle.cell("compiled-static", Phase::kKvDecode);
  };
  for (const char* real : {"label_only", "unproven", "fallback"}) {
    expect_decided(
        judge_artifacts, "compiled_cells", GateVerdict::kFail,
        [&](HonestBundle& bundle) { bundle.made.evidence(cell(bundle))["compiler_real"] = real; },
        "compiler_real");
  }
  expect_decided(
      judge_artifacts, "compiled_cells", GateVerdict::kFail,
      [&](HonestBundle& bundle) { bundle.made.drop_evidence(cell(bundle)); }, "missing");
  expect_decided(
      judge_artifacts, "compiled_cells", GateVerdict::kFail,
      [&](HonestBundle& bundle) {
        bundle.made.row(cell(bundle), 4).counts[Counter::kFallbacks] = 1;
      },
      "repetition 4: fallbacks_delta");
}

TEST(ArtifactGate, AnArmThatLostEveryRowClaimsNoCompiler) {
  HonestBundle bundle;
  const std::string cell = bundle.cell("compiled-static", Phase::kKvDecode);
  bundle.made.drop_evidence(cell);
  for (int64_t i = -2; i < 30; ++i) {
    bundle.made.lose(cell, i, RowStatus::kCrash, "SIGSEGV");
  }
  const JudgedGate gate = judged(judge_artifacts, bundle);
  EXPECT_EQ(gate.verdict(), GateVerdict::kPass);
  EXPECT_THAT(check_of(gate, "rows").found, HasSubstr("1 cell lost every row"));
}

TEST(ArtifactGate, NoTimeAtAllFails) {
  HonestBundle bundle({.phases = {Phase::kKvDecode}});
  for (Row& row : bundle.made.raw().rows) {
    row.status = RowStatus::kOom;
    row.latency_ms.reset();
  }
  EXPECT_EQ(check_of(judged(judge_artifacts, bundle), "rows").verdict, GateVerdict::kFail);
}

TEST(SurfacingGate, EachAxisHasToBeStatedOfEveryArm) {
  const auto blank = [](SharedText Row::*column, const std::string& arm) {
    return [=](HonestBundle& bundle) {
      for (Row& row : bundle.made.raw().rows) {
        if (row.arm == arm) row.*column = "";
      }
    };
  };
  expect_decided(judge_surfacing, "cache", GateVerdict::kFail, blank(&Row::cache, "eager-dynamic"),
                 "arm eager-dynamic");
  expect_decided(judge_surfacing, "mode", GateVerdict::kFail,
                 blank(&Row::compile_mode, "eager-dynamic"), "arm eager-dynamic");
  expect_decided(judge_surfacing, "dynamic", GateVerdict::kFail,
                 blank(&Row::dynamic, "compiled-static"), "arm compiled-static");
  // A graph captured by hand has no symbolic shapes to state.
  HonestBundle by_hand;
  blank(&Row::dynamic, "compiled-static")(by_hand);
  for (Row& row : by_hand.made.raw().rows) {
    if (row.arm == "compiled-static") row.compile_mode = "manual-cudagraph";
  }
  EXPECT_EQ(check_of(judged(judge_surfacing, by_hand), "dynamic").verdict, GateVerdict::kPass);
}

TEST(SurfacingGate, OneArmWithTwoCachesFails) {
  expect_decided(
      judge_surfacing, "cache", GateVerdict::kFail,
      [](HonestBundle& bundle) {
        const std::string cell = bundle.cell("compiled-static", Phase::kKvDecode);
        for (Row& row : bundle.made.raw().rows) {
          if (row.cell_id == cell) row.cache = "dynamic";
        }
      },
      "several: dynamic, static");
}

TEST(SurfacingGate, QuantisationIsNamedOrTheWorkersTypeIs) {
  const auto no_type = [](HonestBundle& bundle) {
    for (const Phase phase : {Phase::kPrefill, Phase::kKvDecode}) {
      bundle.made.evidence(bundle.cell("eager-dynamic", phase))["worker"].erase("dtype");
    }
  };
  expect_decided(judge_surfacing, "quantisation", GateVerdict::kFail, no_type, "arm eager-dynamic");
  HonestBundle named;
  no_type(named);
  for (Row& row : named.made.raw().rows) row.quantization = "q4_0";
  EXPECT_EQ(judged(judge_surfacing, named).verdict(), GateVerdict::kPass);
}

TEST(SurfacingGate, CodeGeneratorsHaveVersions) {
  expect_decided(
      judge_surfacing, "code_generator", GateVerdict::kFail,
      [](HonestBundle& bundle) {
        bundle.made.reported(
            bundle.cell("compiled-static", Phase::kKvDecode))["toolchain"]["version"] = "";
      },
      "arm compiled-static");
  expect_decided(
      judge_surfacing, "code_generator", GateVerdict::kFail,
      [](HonestBundle& bundle) { bundle.identity().erase("code_generator"); }, "arm eager-dynamic");
  HonestBundle none;
  none.identity()["arms"]["eager-dynamic"]["code_generator"] = "none";
  EXPECT_EQ(judged(judge_surfacing, none).verdict(), GateVerdict::kPass)
      << "an eager arm has no code generator";
  none.identity()["arms"]["compiled-static"]["code_generator"] = "none";
  none.made.reported(none.cell("compiled-static", Phase::kKvDecode)).erase("toolchain");
  EXPECT_EQ(judged(judge_surfacing, none).verdict(), GateVerdict::kFail);
}

TEST(SurfacingGate, ACommandStatesNothingByItself) {
  HonestBundle bundle;
  for (Row& row : bundle.made.raw().rows) row.backend = "command";
  const JudgedGate gate = judged(judge_surfacing, bundle);
  EXPECT_EQ(check_of(gate, "code_generator").verdict, GateVerdict::kFail)
      << "the program's own compiler isn't the command's";
}

TEST(Gates, ANamedClaimIsJudgedByItsOwnCells) {
  HonestBundle bundle;
  bundle.made.evidence(bundle.cell("compiled-static", Phase::kPrefill))["compiler_real"] =
      "label_only";
  EXPECT_EQ(judged(judge_artifacts, bundle).verdict(), GateVerdict::kFail);
  EXPECT_EQ(judged(judge_artifacts, bundle, faster_in(Phase::kPrefill)).verdict(),
            GateVerdict::kFail);
  EXPECT_EQ(judged(judge_artifacts, bundle, faster_in(Phase::kKvDecode)).verdict(),
            GateVerdict::kPass);
}

// A claim about a phase that the bundle hasn't: every gate has nothing to look at.
TEST(Gates, WithoutARowOfTheClaimNoneIsDecided) {
  HonestBundle bundle({.phases = {Phase::kKvDecode}});
  for (const GateFunction gate :
       {judge_phases, judge_environment, judge_artifacts, judge_surfacing}) {
    EXPECT_EQ(judged(gate, bundle, faster_in(Phase::kKvDecode)).verdict(), GateVerdict::kPass);
    const JudgedGate none = judged(gate, bundle, faster_in(Phase::kPrefill));
    EXPECT_EQ(none.verdict(), GateVerdict::kNotDecided) << gate_name(none.kind);
    EXPECT_FALSE(found_by(none).empty());
  }
}

TEST(EnvironmentGate, WhereNoWorkerSpokeNothingConfirmsTheIdentity) {
  HonestBundle bundle;
  for (const Row& row : bundle.made.raw().rows) {
    bundle.made.evidence(row.cell_id.str()).erase("reported");
  }
  const JudgedGate gate = judged(judge_environment, bundle);
  EXPECT_EQ(check_of(gate, "agreement").verdict, GateVerdict::kFail);
  EXPECT_EQ(check_of(gate, "agreement").found, "No worker confirms the identity.");
  EXPECT_EQ(check_of(gate, "agreement").decided_by.size(), 8u) << "a cell each";
  EXPECT_THAT(check_of(gate, "agreement").decided_by, Contains(HasSubstr("json: reported")));
}

TEST(EnvironmentGate, ACommandsProgramAndATorchsCompilerAreHashed) {
  HonestBundle command;
  for (Row& row : command.made.raw().rows) row.backend = "command";
  Json& arms = command.made.raw().environment["arms"];
  for (const char* arm : {"eager-dynamic", "compiled-static"}) {
    arms[arm]["program"]["sha256"] = hash_of('e');
  }
  EXPECT_EQ(check_of(judged(judge_environment, command), "toolchain").verdict, GateVerdict::kPass);
  arms["eager-dynamic"].erase("program");
  EXPECT_THAT(check_of(judged(judge_environment, command), "toolchain").decided_by,
              Contains("environment.json: arms.eager-dynamic.program.sha256 (4 cells)"));
  HonestBundle torch;
  make_torch(torch, "3.6.0");
  Json& toolchain =
      torch.made.reported(torch.cell("compiled-static", Phase::kKvDecode))["toolchain"];
  toolchain["cpp_compiler"] = {{"version", "g++ 12.2.0"}, {"sha256", hash_of('f')}};
  EXPECT_EQ(check_of(judged(judge_environment, torch), "toolchain").verdict, GateVerdict::kPass);
  toolchain["cpp_compiler"].erase("sha256");
  EXPECT_THAT(check_of(judged(judge_environment, torch), "toolchain").decided_by,
              Contains(HasSubstr("toolchain.cpp_compiler.sha256")));
}

TEST(EnvironmentGate, ThePlaceThatManyCellsLackIsNamedOnce) {
  HonestBundle bundle;
  bundle.made.raw().environment.erase("program_sha256");
  const GateCheck check = check_of(judged(judge_environment, bundle), "toolchain");
  const auto cells = std::ssize(bundle.facts().cells);
  ASSERT_GT(cells, 1);
  EXPECT_THAT(check.decided_by,
              ElementsAre(fmt::format("environment.json: program_sha256 ({} cells)", cells)));
  EXPECT_EQ(check.decided_by_more, 0);
  EXPECT_THAT(check.found, HasSubstr(fmt::format("{0} of {0} cells lack", cells)));
}

TEST(ArtifactGate, AFileOfSeveralProblemsIsNamedOnce) {
  HonestBundle bundle;
  const JudgedGate gate = judged(judge_artifacts, bundle, {},
                                 {{"prefill/metrics.csv", "expected sha256 a, found b"},
                                  {"study.yaml", "missing"},
                                  {"prefill/metrics.csv", "12 bytes behind the last row"},
                                  {"prefill/metrics.csv", "no commit record"}});
  EXPECT_THAT(check_of(gate, "files").decided_by,
              ElementsAre("prefill/metrics.csv: expected sha256 a, found b (and 2 problems more "
                          "there)",
                          "study.yaml: missing"));
  EXPECT_THAT(check_of(gate, "files").found, HasSubstr("finds 4 problems"));
}

TEST(Gates, ManyDecidersAreCounted) {
  Deciders deciders;
  for (int i = 0; i < 25; ++i) deciders.add(std::to_string(i));
  const GateCheck check =
      std::move(deciders).decide({.name = "x"}, GateVerdict::kFail, "no", "yes");
  EXPECT_EQ(check.decided_by.size(), kMostDeciding);
  EXPECT_EQ(check.decided_by_more, 5);
  EXPECT_EQ(std::move(Deciders()).decide({}, GateVerdict::kFail, "no", "yes").found, "yes");
  EXPECT_EQ(worst({}), GateVerdict::kNotDecided);
}

}  // namespace
}  // namespace assay
