// Study files: the studies made of them, and the error for each way of getting one wrong.
#include "study/study.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "study/study_quality.h"

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A valid study with one line a key, so that a test can replace one line.
struct Lines {
  std::string name = "name: s";
  std::string models = "models: [{path: models/a}]";
  std::string arms = "arms: [{name: x, backend: native, mode: eager, cache: dynamic}]";
  std::string phases = "phases: [prefill]";
  std::string scenarios = "scenarios: [single_micro]";
  std::string rest{};

  std::string text() const {
    return name + "\n" + models + "\n" + arms + "\n" + phases + "\n" + scenarios + "\n" + rest +
           "\n";
  }
};

std::string error_of(const Lines& lines) {
  const auto study = parse_study(lines.text(), "s.yaml");
  return study ? "no error" : study.error().message;
}

Study study_of(const Lines& lines) {
  const auto study = parse_study(lines.text(), "s.yaml");
  EXPECT_TRUE(study) << study.error().message;
  return study.value_or(Study{});
}

std::vector<std::string> arm_names(const Study& study) {
  std::vector<std::string> names;
  for (const StudyArm& arm : study.arms) names.push_back(arm.name);
  return names;
}

TEST(Study, DefaultsAreThoseOfTheHeader) {
  const Study study = study_of({});
  EXPECT_EQ(study.models[0].name, "a");
  EXPECT_EQ(study.models[0].dtype, "");
  EXPECT_EQ(study.baseline, "x");
  EXPECT_EQ(study.repetitions, 30);
  EXPECT_EQ(study.warmup, 3);
  EXPECT_EQ(study.order, RunOrder::kInterleaved);
  EXPECT_EQ(study.padding_scope, PaddingScope::kNone);
  EXPECT_EQ(study.seed, 42u);
  EXPECT_THAT(study.batch, ElementsAre(1));
  EXPECT_FALSE(study.stopping);
}

TEST(Study, TemplateParses) {
  const auto study = parse_study(study_template(), "template");
  ASSERT_TRUE(study) << study.error().message;
  EXPECT_THAT(arm_names(*study), ElementsAre("eager-dynamic", "eager-static", "compiled"));
  EXPECT_EQ(study->phases.size(), 3u);
  EXPECT_EQ(study->scenarios.size(), 5u);
}

TEST(Study, ReadsEveryKey) {
  const Study study = study_of(
      {.models = "models: [{path: models/a/, dtype: bf16}, {path: /b/a, name: other}]",
       .phases = "phases: [e2e_kv, prefill]",
       .scenarios =
           "scenarios: [{name: r, prompt_tokens: [3, 5]}, {name: t, text: hi}, stress_single]",
       .rest = "token_lengths: [8, 4]\nbatch: 2\npadding: {scope: global, multiple_of: 16}\n"
               "repetitions: 7\nwarmup: 0\nstopping: {max_repetitions: 9, relative_ci: 0.05}\n"
               "order: shuffled\nbaseline: x\ntimeout_s: 0.5\nseed: 18446744073709551615"});
  EXPECT_EQ(study.models[0].name, "a");
  EXPECT_EQ(study.models[0].dtype, "bf16");
  EXPECT_EQ(study.models[1].name, "other");
  EXPECT_THAT(study.phases, ElementsAre(Phase::kPrefill, Phase::kE2eKv));
  EXPECT_THAT(study.scenarios[0].prompt_tokens, ElementsAre(3, 5));
  EXPECT_EQ(study.scenarios[1].text, "hi");
  EXPECT_THAT(study.scenarios[2].prompt_tokens, ElementsAre(400));
  EXPECT_THAT(study.token_lengths, ElementsAre(8, 4));
  EXPECT_THAT(study.batch, ElementsAre(2));
  EXPECT_EQ(study.padding_scope, PaddingScope::kGlobal);
  EXPECT_EQ(study.padding_multiple_of, 16);
  ASSERT_TRUE(study.stopping);
  EXPECT_EQ(study.stopping->max_repetitions, 9);
  EXPECT_EQ(study.order, RunOrder::kShuffled);
  EXPECT_EQ(study.timeout_s, 0.5);
  EXPECT_EQ(study.seed, UINT64_MAX);
  EXPECT_EQ(count_cells(study), 2 * 1 * (1 + 2) * 3 * 1);
  EXPECT_EQ(count_rows(study), count_cells(study) * 7);
}

TEST(Study, ListsInAnArmExpandLastFastest) {
  const Study study = study_of(
      {.arms = "arms: [{name: x, backend: native, mode: [eager], cache: [dynamic, static], "
               "threads: [1, 2]}]"});
  EXPECT_THAT(arm_names(study), ElementsAre("x-eager-dynamic-1", "x-eager-dynamic-2",
                                            "x-eager-static-1", "x-eager-static-2"));
  EXPECT_EQ(study.arms[3].cache, "static");
  EXPECT_EQ(study.arms[3].threads, 2);
  EXPECT_EQ(study.baseline, "x-eager-dynamic-1");
}

TEST(Study, TokensAreComparedWithinTheSameWeights) {
  Lines lines;
  const auto arm = [](const char* name, const char* weights) {
    return fmt::format("{{name: {}, backend: native, mode: eager, cache: dynamic{}}}", name,
                       weights);
  };
  lines.arms =
      fmt::format("arms: [{}, {}, {}, {}]", arm("q8", ", quantization: q8.gguf"), arm("full", ""),
                  arm("q4", ", quantization: q4.gguf"), arm("more", ", quantization: q4.gguf"));
  lines.rest = "baseline: more";
  const Study study = study_of(lines);
  std::vector<size_t> references;
  for (size_t i = 0; i < study.arms.size(); ++i) references.push_back(parity_reference(study, i));
  EXPECT_THAT(references, ElementsAre(0, 1, 3, 3));
  ASSERT_TRUE(study.quality);
  EXPECT_EQ(study.quality->windows, 8);
  lines.rest = "quality: false";
  EXPECT_FALSE(study_of(lines).quality);
  lines.rest = "quality: {windows: 3, window: 16, text: a.txt}";
  EXPECT_EQ(study_of(lines).quality->text_file, "a.txt");
  lines.rest = "quality: {window: 4}";
  EXPECT_THAT(error_of(lines), HasSubstr("window: expected an integer from 8"));
  EXPECT_THAT(error_of({.rest = "quality: {windows: 3}"}),
              HasSubstr("expected the key \"quantization\" of an arm beside it"));
}

TEST(Study, UnknownKeysNameLineAndNearestKeyAtEveryLevel) {
  EXPECT_EQ(error_of({.rest = "repetitons: 3"}),
            "s.yaml line 6: unknown key \"repetitons\" (did you mean \"repetitions\"?)");
  EXPECT_EQ(error_of({.models = "models: [{path: a, dtpye: fp32}]"}),
            "s.yaml line 2: models: unknown key \"dtpye\" (did you mean \"dtype\"?)");
  EXPECT_EQ(error_of({.arms = "arms: [{name: x, backend: native, mode: eager, cahce: static}]"}),
            "s.yaml line 3: arms: unknown key \"cahce\" (did you mean \"cache\"?)");
  EXPECT_EQ(error_of({.scenarios = "scenarios: [{name: x, promt_tokens: 3}]"}),
            "s.yaml line 5: scenarios: unknown key \"promt_tokens\" (did you mean "
            "\"prompt_tokens\"?)");
  EXPECT_EQ(error_of({.rest = "padding: {scop: none}"}),
            "s.yaml line 6: padding: unknown key \"scop\" (did you mean \"scope\"?)");
  EXPECT_EQ(error_of({.rest = "stopping: {max: 3, relative_ci: 0.1}"}),
            "s.yaml line 6: stopping: unknown key \"max\"; expected one of max_repetitions, "
            "relative_ci, decide, margin");
}

TEST(Study, UnknownWordsAreAnsweredWithTheKnownOnes) {
  EXPECT_EQ(error_of({.phases = "phases: [prefil]"}),
            "s.yaml line 4: phases: expected one of prefill, kv_decode, e2e_kv, found \"prefil\" "
            "(did you mean \"prefill\"?)");
  EXPECT_THAT(error_of({.scenarios = "scenarios: [single_mirco]"}),
              HasSubstr("found \"single_mirco\" (did you mean \"single_micro\"?); prompt_N has N"));
  EXPECT_THAT(error_of({.scenarios = "scenarios: [{name: single_mirco}]"}),
              HasSubstr("did you mean \"single_micro\"?"));
  EXPECT_THAT(error_of({.rest = "order: interleave"}), HasSubstr("did you mean \"interleaved\"?"));
  EXPECT_THAT(error_of({.rest = "padding: {scope: globl}"}), HasSubstr("did you mean \"global\"?"));
  EXPECT_THAT(error_of({.models = "models: [{path: a, dtype: fp23}]"}),
              HasSubstr("expected one of fp32, fp16, bf16, found \"fp23\""));
  EXPECT_EQ(
      error_of({.arms = "arms: [{name: x, backend: touch, mode: eager, cache: static}]"}),
      "s.yaml line 3: arms.backend: expected one of native, torch, command, http, found \"touch\" "
      "(did you "
      "mean \"torch\"?)");
  EXPECT_EQ(error_of({.arms = "arms: [{name: x, backend: native, mode: compile, cache: static}]"}),
            "s.yaml line 3: arms.mode: expected one of eager, compiled, found \"compile\" "
            "(did you mean \"compiled\"?)");
  EXPECT_THAT(error_of({.rest = "baseline: y"}), HasSubstr("line 6: baseline: expected x, found"));
}

TEST(Study, NumbersHaveTypesAndRanges) {
  EXPECT_EQ(error_of({.rest = "repetitions: 0"}),
            "s.yaml line 6: repetitions: expected an integer from 1 to 1000000, found \"0\"");
  EXPECT_EQ(error_of({.rest = "warmup: -1"}),
            "s.yaml line 6: warmup: expected an integer from 0 to 1000000, found \"-1\"");
  for (const char* wrong :
       {"3.5", "ten", "\"3\"", "[3]", "{a: 3}", "", "0x10", "1e3", "3 4", "99999999999999999999"}) {
    EXPECT_THAT(error_of({.rest = "repetitions: " + std::string(wrong)}),
                HasSubstr("line 6: repetitions: expected an integer"))
        << wrong;
  }
  for (const char* wrong : {"nan", ".inf", "inf", "0", "-1", "1e9", "soon"}) {
    EXPECT_THAT(error_of({.rest = "timeout_s: " + std::string(wrong)}),
                HasSubstr("timeout_s: expected a number above 0"))
        << wrong;
  }
  EXPECT_THAT(error_of({.rest = "seed: -1"}), HasSubstr("seed: expected"));
  EXPECT_THAT(error_of({.rest = "batch: [1, 0]"}), HasSubstr("batch: expected an integer from 1"));
  EXPECT_THAT(
      error_of({.rest = "repetitions: 30\nstopping: {max_repetitions: 29, relative_ci: 0.1}"}),
      HasSubstr("line 7: stopping.max_repetitions: expected an integer from 30"));
}

TEST(Study, ProcessesShareTheRepetitions) {
  EXPECT_EQ(study_of({}).processes, 1);
  EXPECT_EQ(study_of({.rest = "processes: 4"}).processes, 4);
  EXPECT_EQ(study_of({.rest = "processes: 30"}).processes, 30) << "one repetition each";
  for (const char* wrong : {"0", "-1", "1001", "1.5", "two", "[2]", ""}) {
    EXPECT_THAT(error_of({.rest = "repetitions: 2000\nprocesses: " + std::string(wrong)}),
                HasSubstr("s.yaml line 7: processes: expected an integer"))
        << wrong;
  }
  EXPECT_EQ(error_of({.rest = "processes: 31"}),
            "s.yaml line 6: processes: expected at most as many processes as repetitions, 30, "
            "found 31");
  const std::string stopping = "stopping: {max_repetitions: 40, relative_ci: 0.1}\n";
  EXPECT_EQ(study_of({.rest = stopping + "processes: 15"}).processes, 15);
  EXPECT_EQ(
      error_of({.rest = stopping + "processes: 16"}),
      "s.yaml line 6: stopping: expected at least 2 repetitions for each of the 16 processes, "
      "found 30");
  EXPECT_EQ(count_rows(study_of({.rest = "processes: 4"})), 30 + 4 * 3) << "each warms up";
}

// The valid study with two arms and this stopping.
Lines stopping_of_two(const std::string& stopping, const std::string& rest = "") {
  return {.arms = "arms: [{name: x, backend: native, mode: eager, cache: [dynamic, static]}]",
          .rest = "stopping: {" + stopping + "}\n" + rest};
}

TEST(Study, StopsByDecisionsBetweenArmsThatRunSideBySide) {
  const Study study = study_of(stopping_of_two("max_repetitions: 40, decide: true"));
  ASSERT_TRUE(study.stopping);
  EXPECT_TRUE(study.stopping->decide);
  EXPECT_EQ(study.stopping->margin, 0.03);
  EXPECT_EQ(
      study_of(stopping_of_two("max_repetitions: 40, decide: true, margin: 0.1")).stopping->margin,
      0.1);
  const auto wrong = [](const std::string& stopping, const std::string& rest = "") {
    return error_of(stopping_of_two(stopping, rest));
  };
  const std::string decide = "max_repetitions: 40, decide: true";
  EXPECT_EQ(wrong(decide, "order: sequential"),
            "s.yaml line 6: stopping.decide: expected order interleaved, whose arms run side by "
            "side, found sequential");
  EXPECT_THAT(wrong(decide, "order: shuffled"), HasSubstr("found shuffled"));
  EXPECT_THAT(wrong(decide, "processes: 16"), HasSubstr("at least 2 repetitions for each of"));
  EXPECT_THAT(wrong(decide + ", relative_ci: 0.1"), HasSubstr("decide or relative_ci, not both"));
  EXPECT_THAT(wrong("max_repetitions: 40, decide: false"), HasSubstr("relative_ci"));
  EXPECT_THAT(wrong("max_repetitions: 40, relative_ci: 0.1, margin: 0.1"),
              HasSubstr("no margin without decide: true"));
  EXPECT_THAT(wrong(decide + ", margin: 0"), HasSubstr("margin: expected a number above 0"));
  EXPECT_THAT(wrong("max_repetitions: 40, decide: perhaps"), HasSubstr("decide: expected"));
  EXPECT_THAT(error_of({.rest = "stopping: {" + decide + "}"}),
              HasSubstr("two arms or more to decide between"));
}

TEST(Study, StoppingByDecisionsAddsWholeRounds) {
  const auto rounds_of = [](const std::string& stopping, const std::string& rest) {
    return rounds(study_of(stopping_of_two(stopping, rest)));
  };
  EXPECT_EQ(rounds_of("max_repetitions: 200, decide: true", "processes: 5"), 33);
  EXPECT_EQ(rounds_of("max_repetitions: 30, decide: true", "processes: 5"), 5);
  EXPECT_EQ(rounds_of("max_repetitions: 35, decide: true", "processes: 5"), 5) << "six in each";
  EXPECT_EQ(rounds_of("max_repetitions: 200, decide: true", "processes: 1"), 6);
  EXPECT_EQ(rounds_of("max_repetitions: 200, relative_ci: 0.1", "processes: 5"), 5);
  const Study study =
      study_of(stopping_of_two("max_repetitions: 200, decide: true", "processes: 5"));
  EXPECT_EQ(round_begin(study, 33), 198);
  EXPECT_EQ(count_rows(study), 2 * (33 * 3 + 198));
}

TEST(Study, DuplicatesAreErrors) {
  EXPECT_THAT(error_of({.models = "models: [{path: a/m}, {path: b/m}]"}),
              HasSubstr("line 2: models: expected each model's name once"));
  EXPECT_THAT(error_of({.arms = "arms:\n  - {name: x-static, backend: native, mode: eager, cache: "
                                "static}\n  - {name: x, backend: native, mode: eager, cache: "
                                "[static]}"}),
              HasSubstr("line 5: arms.name: expected each arm's name once, found \"x-static\""));
  EXPECT_THAT(error_of({.phases = "phases: [prefill, prefill]"}), HasSubstr("\"prefill\" again"));
  EXPECT_THAT(error_of({.scenarios = "scenarios: [single_micro, single_micro]"}),
              HasSubstr("\"single_micro\" again"));
  EXPECT_THAT(error_of({.rest = "batch: [2, 2]"}), HasSubstr("2 again"));
}

TEST(Study, EmptyAndMissingThings) {
  EXPECT_EQ(error_of({.models = ""}), "s.yaml line 1: expected the key \"models\", found none");
  EXPECT_EQ(error_of({.arms = "arms: []"}),
            "s.yaml line 3: arms: expected a list of at least one, found an empty list");
  EXPECT_THAT(error_of({.phases = "phases:"}), HasSubstr("expected a list, found nothing"));
  EXPECT_EQ(error_of({.arms = "arms: [{name: x, backend: native, mode: eager}]"}),
            "s.yaml line 3: arms: expected the key \"cache\", found none");
  EXPECT_THAT(error_of({.arms = "arms: [{name: x, backend: native, mode: eager, cache: []}]"}),
              HasSubstr("arms.cache: expected a list of at least one"));
  EXPECT_THAT(error_of({.arms = "arms: [x]"}), HasSubstr("expected a map with the keys name"));
  EXPECT_THAT(error_of({.name = "name: \"\""}), HasSubstr("name: expected a word"));
  EXPECT_THAT(error_of({.models = "models: [{path: /}]"}), HasSubstr("ends in a folder's name"));
  EXPECT_FALSE(parse_study("", "s.yaml"));
  EXPECT_FALSE(parse_study("just words", "s.yaml"));
}

TEST(Study, AScenarioMayNameItsLengthAndThePhasesThatMeasureIt) {
  Lines lines{.phases = "phases: [prefill, kv_decode]",
              .scenarios =
                  "scenarios: [{name: prompt_512, phases: prefill}, single_micro,\n"
                  "  {name: late, prompt_tokens: [7], phases: [kv_decode]}]",
              .rest = "token_lengths: [8, 16]"};
  const Study study = study_of(lines);
  EXPECT_EQ(study.scenarios[0].name, "prompt_512");
  EXPECT_THAT(study.scenarios[0].prompt_tokens, ElementsAre(512));
  EXPECT_TRUE(runs_in(study.scenarios[0], Phase::kPrefill));
  EXPECT_FALSE(runs_in(study.scenarios[0], Phase::kKvDecode));
  EXPECT_EQ(count_cells(study), 2 + 2 * 2);
  EXPECT_EQ(longest_generation(study, study.scenarios[0]), 0);
  EXPECT_EQ(longest_generation(study, study.scenarios[1]), 16);
  for (const char* name : {"prompt_", "prompt_0", "prompt_07", "prompt_7x", "prompt_1000001"}) {
    lines.scenarios = fmt::format("scenarios: [{}]", name);
    EXPECT_THAT(error_of(lines), HasSubstr("prompt_N has N tokens")) << name;
  }
  lines.scenarios = "scenarios: [{name: prompt_5, phases: [e2e_kv]}]";
  EXPECT_THAT(error_of(lines), HasSubstr("phases: expected one of prefill, kv_decode, found"));
  lines.scenarios = "scenarios: [{name: prompt_5, phases: [prefill, prefill]}]";
  EXPECT_THAT(error_of(lines), HasSubstr("expected each once"));
  lines.scenarios = "scenarios: [{name: prompt_5, phases: prefill}]";
  EXPECT_EQ(error_of(lines),
            "s.yaml line 4: phases: expected a scenario for each, found none for kv_decode");
}

TEST(Study, TokenLengthsAreNeededByDecodingPhasesOnly) {
  EXPECT_EQ(error_of({}), "no error");
  EXPECT_EQ(error_of({.phases = "phases: [prefill, kv_decode]"}),
            "s.yaml line 4: phases: expected the key \"token_lengths\" for kv_decode, found none");
}

TEST(Study, KeysThatContradictEachOther) {
  EXPECT_THAT(error_of({.scenarios = "scenarios: [{name: a, text: x, prompt_tokens: 3}]"}),
              HasSubstr("expected prompt_tokens or text, found both"));
  EXPECT_THAT(error_of({.arms = "arms: [{name: x, backend: native, mode: eager, cache: static, "
                                "dynamic: true}]"}),
              HasSubstr("arms.dynamic: expected no such key in an arm of mode eager"));
}

TEST(Study, KeysOfCompiledArmsBecomeOptions) {
  const Study study = study_of({.arms = R"(arms:
  - {name: a, backend: native, mode: compiled, cache: static}
  - {name: b, backend: native, mode: compiled, cache: static, dynamic: false, recompile_limit: 2,
     split: decode, bucket: [16, 32], disabled_passes: "fuse_norm, merge_products",
     kernel_cache: false, weight_cache: true})"});
  EXPECT_THAT(arm_names(study), ElementsAre("a", "b-16", "b-32"));
  EXPECT_EQ(study.arms[0].dynamic, "auto");
  EXPECT_EQ(study.arms[0].options, Json::object());
  EXPECT_EQ(study.arms[1].dynamic, "false");
  const Json expected = {{"recompile_limit", 2},  {"split", "decode"},
                         {"bucket", 16},          {"disabled_passes", "fuse_norm, merge_products"},
                         {"kernel_cache", false}, {"weight_cache", true}};
  EXPECT_EQ(study.arms[1].options, expected);
  EXPECT_EQ(study.arms[2].options["bucket"], 32);
  const std::string arm = "arms: [{name: x, backend: native, mode: ";
  const std::string on_gpu = "compiled, cache: static, device: cuda, weight_cache: ";
  EXPECT_THAT(error_of({.arms = arm + on_gpu + "true}]"}),
              HasSubstr("arms.weight_cache: expected false in an arm on a GPU"));
  EXPECT_EQ(study_of({.arms = arm + on_gpu + "false}]"}).arms.size(), 1);
  EXPECT_THAT(error_of({.arms = arm + "eager, cache: static, bucket: 8}]"}),
              HasSubstr("arms.bucket: expected no such key in an arm of mode eager"));
  EXPECT_THAT(error_of({.arms = arm + "compiled, cache: static, split: e2e}]"}),
              HasSubstr("arms.split: expected one of prefill, decode, found"));
  EXPECT_THAT(error_of({.arms = arm + "compiled, cache: static, buckets: 8}]"}),
              HasSubstr("did you mean \"bucket\"?"));
}

TEST(Study, KeysOfTorchArms) {
  const Study study = study_of({.arms = R"(arms:
  - {name: e, backend: torch, mode: eager, cache: dynamic, device: cpu, attn_implementation: sdpa,
     step_times: true, python: $STACK_A}
  - {name: m, backend: torch, mode: manual-cudagraph, cache: static}
  - {name: c, backend: torch, mode: [default, reduce-overhead], cache: static,
     torch_backend: aot_eager, fullgraph: true, cudagraph_trees: false, compile_target: module,
     compile_phases: decode, mark_step_begin: true, recompile_limit: 3, keep_cache: true,
     explain: false, attention_mask: always})"});
  EXPECT_THAT(arm_names(study), ElementsAre("e", "m", "c-default", "c-reduce-overhead"));
  EXPECT_EQ(study.arms[0].options["python"], "$STACK_A");
  EXPECT_EQ(study.arms[0].dynamic, "");
  EXPECT_EQ(study.arms[1].dynamic, "") << "captured, not compiled";
  EXPECT_EQ(study.arms[2].dynamic, "auto");
  const Json expected = {{"recompile_limit", 3},       {"torch_backend", "aot_eager"},
                         {"fullgraph", true},          {"cudagraph_trees", false},
                         {"compile_target", "module"}, {"compile_phases", "decode"},
                         {"mark_step_begin", true},    {"attention_mask", "always"},
                         {"explain", false},           {"keep_cache", true}};
  EXPECT_EQ(study.arms[2].options, expected);
  const std::string torch = "arms: [{name: x, backend: torch, cache: static, mode: ";
  EXPECT_THAT(error_of({.arms = torch + "compiled}]"}),
              HasSubstr("expected one of eager, default"));
  EXPECT_THAT(error_of({.arms = torch + "default, bucket: 8}]"}),
              HasSubstr("arms.bucket: expected no such key in an arm of backend torch"));
  EXPECT_THAT(error_of({.arms = torch + "manual-cudagraph, fullgraph: true}]"}),
              HasSubstr("no such key in an arm of mode manual-cudagraph"));
  EXPECT_THAT(error_of({.arms = torch + "default, compile_phase: decode}]"}),
              HasSubstr("did you mean \"compile_phases\"?"));
  EXPECT_THAT(error_of({.arms = torch + "default, device: gpu}]"}),
              HasSubstr("expected one of cpu, cuda, auto"));
}

TEST(Study, NativeArmsNameTheirDevice) {
  const Study study = study_of({.arms = R"(arms:
  - {name: n, backend: native, mode: [eager, compiled], cache: static, device: [cpu, "cuda:1"]})"});
  EXPECT_THAT(arm_names(study),
              ElementsAre("n-eager-cpu", "n-eager-cuda:1", "n-compiled-cpu", "n-compiled-cuda:1"));
  EXPECT_EQ(study.arms[3].options["device"], "cuda:1");
  EXPECT_THAT(error_of({.arms = "arms: [{name: n, backend: native, mode: eager, cache: static, "
                                "device: auto}]"}),
              HasSubstr("arms.device: expected cpu, cuda or cuda:N, found"));
}

TEST(Study, AModelMayBeAnArchitectureWithoutAFile) {
  const Study study =
      study_of({.models = "models: [{arch: tiny-gpt2, dtype: fp16}, {arch: tiny-gpt2, name: b}]"});
  EXPECT_EQ(study.models[0].name, "tiny-gpt2");
  EXPECT_EQ(study.models[0].arch, "tiny-gpt2");
  EXPECT_TRUE(study.models[0].path.empty());
  EXPECT_EQ(study.models[1].name, "b");
  EXPECT_THAT(error_of({.models = "models: [{arch: a, path: b}]"}),
              HasSubstr("expected path or arch, not both"));
}

TEST(Study, ParityAndTheTimeOfCompilationsHaveDefaults) {
  const Study plain = study_of({.rest = "timeout_s: 7"});
  EXPECT_EQ(plain.parity, ParityTime::kBefore);
  EXPECT_EQ(plain.compile_timeout_s, 7);
  const Study given = study_of({.rest = "parity: after\ncompile_timeout_s: 9"});
  EXPECT_EQ(given.parity, ParityTime::kAfter);
  EXPECT_EQ(given.compile_timeout_s, 9);
  EXPECT_THAT(error_of({.rest = "parity: never"}), HasSubstr("expected one of before, after"));
}

TEST(Study, ProcessesShareCpusWhereTheirArmsAreAlike) {
  const auto arms = [](const std::string& one, const std::string& other) {
    return "arms: [{name: x, " + one + "}, {name: y, " + other + "}]";
  };
  const std::string native = "backend: native, mode: eager, cache: static";
  const std::string torch = "backend: torch, mode: eager, cache: static";
  EXPECT_EQ(shared_cpus(study_of({})), 0) << "as many threads as there are CPUs";
  const std::string two = native + ", threads: 2";
  EXPECT_EQ(shared_cpus(study_of({.arms = arms(two, two)})), 2);
  EXPECT_EQ(shared_cpus(study_of({.arms = arms(two, two), .rest = "cpus: free"})), 0);
  EXPECT_EQ(shared_cpus(study_of({.arms = arms(two, native + ", threads: 1")})), 0);
  EXPECT_EQ(shared_cpus(study_of({.arms = arms(two, two + ", device: cuda")})), 0);
  EXPECT_EQ(shared_cpus(study_of({.arms = arms(two, two + ", device: cpu")})), 2);
  const std::string mixed = arms(two, torch + ", threads: 2");
  EXPECT_EQ(shared_cpus(study_of({.arms = mixed})), 0) << "what torch starts computes too";
  EXPECT_EQ(shared_cpus(study_of({.arms = mixed, .rest = "cpus: together"})), 2);
  EXPECT_THAT(error_of({.rest = "cpus: together"}),
              HasSubstr("expected arms on the processor with one number of `threads`"));
  EXPECT_THAT(error_of({.rest = "cpus: 0-3"}), HasSubstr("expected one of together, free"));
}

TEST(Study, RequirementsAreNamedAndHaveRanges) {
  EXPECT_TRUE(study_of({}).require.empty());
  const Study study = study_of({.rest = "require: {cuda: true, triton: 3, graph_breaks: 0, "
                                        "parity: false}"});
  EXPECT_EQ(study.require, Json({{"cuda", true}, {"triton", 3}, {"graph_breaks", 0}}));
  EXPECT_THAT(error_of({.rest = "require: {grah_breaks: 0}"}),
              HasSubstr("did you mean \"graph_breaks\"?"));
  EXPECT_THAT(error_of({.rest = "require: {triton: 0}"}), HasSubstr("an integer from 1 to"));
  EXPECT_THAT(error_of({.rest = "require: {parity: 3}"}), HasSubstr("one of true, false"));
  EXPECT_THAT(error_of({.rest = "require: all"}), HasSubstr("a map with the keys cuda, triton"));
}

TEST(Study, ExpansionAndPlanSizeAreBounded) {
  std::string many = "1";
  for (int i = 2; i <= 65; ++i) many += "," + std::to_string(i);
  EXPECT_THAT(error_of({.arms = "arms: [{name: x, backend: native, mode: eager, cache: static, "
                                "threads: [" +
                                many + "]}]"}),
              HasSubstr("expected at most 64 arms"));
  EXPECT_THAT(error_of({.rest = "batch: [" + many + "]"}), HasSubstr("at most 64 values"));
  EXPECT_THAT(error_of({.rest = "repetitions: 1000000\nwarmup: 1000000\nbatch: [1, 2]"}),
              HasSubstr("expected a plan of at most 2000000 rows, found 4000000"));
}

TEST(Study, ReadingNamesThePath) {
  const auto missing = read_study("/nonexistent/s.yaml");
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("/nonexistent/s.yaml: expected a readable file"));
  EXPECT_FALSE(read_study("/dev/zero"));
  EXPECT_FALSE(read_study(testing::TempDir()));
}

}  // namespace
}  // namespace assay
