// A command's arm, its readiness and its worker.
#include "backend/command/command_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "backend/command/command_options.h"
#include "backend/command/command_worker.h"
#include "backend/command/repository_fixture.h"
#include "base/files/hash.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

LoadRequest load_of(const Json& options, const std::string& mode = "") {
  LoadRequest request;
  request.model = "models/it's";
  request.mode = mode;
  request.options = options;
  return request;
}

class CommandBackendTest : public RepositoryTest {
 protected:
  StudyArm arm(const std::string& revision) const {
    StudyArm made;
    made.name = "x";
    made.backend = "command";
    made.options = {{"command", {"sh", "bench.sh"}},
                    {"patterns", {"(?<latency_ms>\\d+) ms"}},
                    {"samples", 1},
                    {"checkout", {{"repo", repo_.string()}, {"revision", revision}}}};
    return made;
  }
};

TEST_F(CommandBackendTest, TheGateKnowsCommitProgramAndFiles) {
  const auto backend = make_command_backend("assay", system_spawner());
  const ArmReadiness one = backend->readiness(arm("one"));
  EXPECT_EQ(one.verdict, ArmReadiness::Verdict::kReady) << one.reason;
  EXPECT_EQ(one.code_sha.size(), 40u);
  EXPECT_THAT(one.program["path"].get<std::string>(), HasSubstr("/sh"));
  EXPECT_EQ(one.facts["files"].size(), 1u) << "the script";
  const ArmReadiness two = backend->readiness(arm("two"));
  EXPECT_NE(two.code_sha, one.code_sha);
  EXPECT_NE(two.facts["files"], one.facts["files"]);
  EXPECT_EQ(two.framework_build, one.framework_build) << "the commit says what differs";
  const ArmReadiness none = backend->readiness(arm("three"));
  EXPECT_EQ(none.verdict, ArmReadiness::Verdict::kImpossible);
  EXPECT_EQ(none.error_class, "no_checkout");

  StudyArm missing = arm("one");
  missing.options.erase("checkout");
  missing.options["command"] = {"no-such-program-anywhere"};
  EXPECT_EQ(backend->readiness(missing).error_class, "no_program");
}

// Files that must stay as they are, by names that are the same in every sitting.
TEST_F(CommandBackendTest, ItsInputsAreItsProgramAndWordsThatAreFiles) {
  const auto backend = make_command_backend("assay", system_spawner());
  const auto inputs = [&](const StudyArm& of) {
    EXPECT_EQ(backend->readiness(of).verdict, ArmReadiness::Verdict::kReady);
    std::vector<std::string> names;
    for (const ArmInput& input : backend->inputs(of)) {
      names.push_back(input.name);
      EXPECT_TRUE(input.path.is_absolute()) << input.path;
      if (input.sha256.empty()) continue;  // the readiness didn't read it
      EXPECT_EQ(input.sha256, sha256_file_hex(input.path).value_or("none")) << input.path;
    }
    return names;
  };
  EXPECT_THAT(inputs(arm("one")), ElementsAre("sh", "bench.sh"));
  StudyArm placed = arm("one");
  placed.options["command"] = {"sh", "{checkout}/bench.sh", "no-file", "{batch}"};
  EXPECT_THAT(inputs(placed), ElementsAre("sh", "{checkout}/bench.sh"));
  StudyArm shell_text = arm("two");
  shell_text.options["shell"] = true;
  shell_text.options["command"] = {"cd .;cat 'bench.sh'|sh"};
  EXPECT_THAT(inputs(shell_text), ElementsAre("/bin/sh", "bench.sh"));
}

// The hash that stands for a command changes with the command, and with nothing else.
TEST_F(CommandBackendTest, ACommandIsItsTextItsProgramAndItsFiles) {
  const fs::path folder = folder_->path();
  const auto write = [&](const char* name, const std::string& text) {
    std::ofstream(folder / name) << text;
    fs::permissions(folder / name, fs::perms::owner_all);
  };
  write("program", "#!/bin/sh\n");
  write("script", "echo 10 ms\n");
  const auto build = [&](const Json& change = Json::object()) {
    StudyArm made = arm("one");
    made.options.erase("checkout");
    made.options["command"] = {(folder / "program").string(), (folder / "script").string()};
    made.options.update(change);
    const ArmReadiness readiness = make_command_backend("assay", system_spawner())->readiness(made);
    EXPECT_EQ(readiness.verdict, ArmReadiness::Verdict::kReady) << readiness.reason;
    return readiness.framework_build;
  };
  const std::string first = build();
  EXPECT_EQ(build(), first);
  EXPECT_NE(build({{"env", {{"A", "1"}}}}), first);
  EXPECT_NE(build({{"env", {{"A", "1"}}}}), build({{"env", {{"A", "2"}}}}));
  EXPECT_NE(build({{"workdir", folder.string()}}), first);
  EXPECT_NE(build({{"command", {(folder / "program").string(), "-x"}}}), first);
  write("script", "echo 11 ms\n");
  const std::string other_script = build();
  EXPECT_NE(other_script, first);
  write("program", "#!/bin/bash\n");
  EXPECT_NE(build(), other_script);
}

TEST_F(CommandBackendTest, ACheckoutThatTheCommandChangedIsSaidToBe) {
  const auto changed = [&](const std::string& command) {
    const auto backend = make_command_backend("assay", system_spawner());
    StudyArm made = arm("one");
    made.options["command"] = {"sh", "-c", command};
    EXPECT_EQ(backend->readiness(made).verdict, ArmReadiness::Verdict::kReady);
    const auto worker = make_command_worker("1", system_spawner());
    LoadRequest request;
    request.options = backend->load_options(made, {}, 1);
    EXPECT_TRUE(worker->load(request));
    EXPECT_TRUE(worker->measure({Phase::kE2eKv, 1, 4, 12}, {{{0}}, {0}}, 0));
    const Json checkout = worker->evidence({Phase::kE2eKv})->evidence["actual"]["checkout"];
    EXPECT_EQ(checkout["sha"].get<std::string>() + "\n", git("rev-parse one"));
    return checkout["files_changed"].get<bool>();
  };
  EXPECT_FALSE(changed("sh bench.sh; echo 1 > result.json"));
  EXPECT_TRUE(changed("sh bench.sh; echo 'echo 1 ms' > bench.sh"));
}

TEST_F(CommandBackendTest, ACommandThatNeedsSidesIsRefusedWithoutThem) {
  const auto backend = make_command_backend("assay", system_spawner());
  StudyArm open = arm("one");
  open.options["checkout"].erase("revision");
  EXPECT_THAT(backend->check_arm(open).error().message, HasSubstr("compare --run"));
  StudyArm sided = arm("one");
  sided.options["command"] = {"{side}"};
  EXPECT_THAT(backend->check_arm(sided).error().message, HasSubstr("{side}"));
  sided.options["side"] = "sh";
  EXPECT_TRUE(backend->check_arm(sided));
}

const WireShape kDecode{Phase::kE2eKv, 1, 4, 12};
const WirePrompt kPrompt{{{0, 0, 0, 0, 0, 0, 0, 0}}, {0}};

TEST(CommandWorker, GivesOutWhatOneInvocationPrinted) {
  const auto worker = make_command_worker("1", system_spawner());
  ASSERT_TRUE(worker->load(load_of({{"command", "echo {prompt_tokens} ms {new_tokens} ms"},
                                    {"shell", true},
                                    {"patterns", {"(?<latency_ms>\\d+) ms"}},
                                    {"samples", 2}})));
  ASSERT_TRUE(worker->prepare({kDecode, {8}}));
  const auto first = worker->measure(kDecode, kPrompt, 0);
  ASSERT_TRUE(first) << first.error().message;
  const auto second = worker->measure(kDecode, kPrompt, 1);
  ASSERT_TRUE(second);
  EXPECT_THAT((std::vector{first->latency_ms, second->latency_ms}), ElementsAre(8.0, 4.0));
  EXPECT_FALSE(first->recalled);
  EXPECT_GT(first->peak_rss_bytes.value_or(0), 0);
  EXPECT_FALSE(second->peak_rss_bytes) << "the invocation's, once";
  EXPECT_TRUE(second->recalled) << "the machine's state now isn't its own";
  EXPECT_EQ(first->started_at_ns, second->started_at_ns);
  EXPECT_EQ(worker->measure(kDecode, kPrompt, 2).error().error_class, "too_few_samples");
  ASSERT_TRUE(worker->prepare({kDecode, {8}}));
  EXPECT_TRUE(worker->measure(kDecode, kPrompt, 0)) << "a cell prepared anew runs it anew";
  EXPECT_FALSE(worker->parity({}));
  const Json evidence = worker->evidence({Phase::kE2eKv})->evidence;
  EXPECT_EQ(evidence["compiler_real"], "not_applicable");
  EXPECT_EQ(evidence["actual"]["invocation"]["samples_printed"], 2);
}

TEST(CommandWorker, AModeThatCompilesIsUnproven) {
  const auto worker = make_command_worker("1", system_spawner());
  const Json options = {{"command", {"true"}}, {"patterns", {"(?<latency_ms>x)"}}};
  ASSERT_TRUE(worker->load(load_of(options, "reduce-overhead")));
  EXPECT_EQ(worker->evidence({Phase::kE2eKv})->evidence["compiler_real"], "unproven");
}

TEST(CommandWorker, OutcomesAreRepliesWithTheirClass) {
  const auto outcome = [](const std::string& command, int samples) {
    const auto worker = make_command_worker("1", system_spawner());
    EXPECT_TRUE(worker->load(load_of({{"command", command},
                                      {"shell", true},
                                      {"patterns", {"(?<latency_ms>\\S+) ms"}},
                                      {"samples", samples}})));
    const auto sample = worker->measure(kDecode, kPrompt, 0);
    if (sample) return std::string("ok");
    return sample.error().error_class + "/" + sample.error().outcome +
           (sample.error().out_of_memory ? "/oom" : "");
  };
  EXPECT_EQ(outcome("echo 1 ms", 1), "ok");
  EXPECT_EQ(outcome("echo 1 ms", 2), "too_few_samples/");
  EXPECT_EQ(outcome("echo 1 ms; exit 9", 1), "exit 9/crash");
  EXPECT_EQ(outcome("echo 1 ms; kill -ABRT $$", 1), "SIGABRT/crash");
  EXPECT_EQ(outcome("true", 1), "no_match/false_success");
  EXPECT_EQ(outcome("echo inf ms", 1), "bad_figure/false_success");
  EXPECT_EQ(
      outcome("printf 'Traceback (most recent call last):\\n  x\\nMemoryError\\n' >&2; exit 1", 1),
      "MemoryError//oom");
  EXPECT_EQ(outcome("echo \"terminate called after throwing an instance of 'std::bad_alloc'\" >&2; "
                    "kill -ABRT $$",
                    1),
            "std::bad_alloc//oom")
      << "no crash beside";
}

TEST(CommandWorker, EveryPlaceholderHasTheCellsValue) {
  LoadRequest request = load_of({{"command",
                                  {"echo", "1 ms 2 ms",
                                   "{model}|{dtype}|{mode}|{cache}|{dynamic}|"
                                   "{threads}|{phase}|{batch}|{prompt_tokens}|"
                                   "{new_tokens}|{seed}|{samples}|{checkout}"}},
                                 {"patterns", {"(?<latency_ms>\\d+) ms"}},
                                 {"seed", 42},
                                 {"samples", 2},
                                 {"checked_out", {{"folder", "/"}, {"sha", "abc"}}}},
                                "eager");
  request.model = "m";
  request.dtype = "fp16";
  request.cache = "static";
  request.dynamic = "auto";
  request.threads = 3;
  const auto worker = make_command_worker("1", system_spawner());
  ASSERT_TRUE(worker->load(request));
  // Eight ids, of which three are padding.
  const auto sample =
      worker->measure({Phase::kKvDecode, 1, 4, 12}, {{{0, 0, 0, 0, 0, 0, 0, 0}}, {3}}, 0);
  ASSERT_TRUE(sample) << sample.error().message;
  const Json evidence = worker->evidence({Phase::kKvDecode})->evidence;
  EXPECT_EQ(evidence["actual"]["invocation"]["argv"][2],
            "m|fp16|eager|static|auto|3|kv_decode|1|5|4|42|2|/");
}

TEST(CommandOptions, AnInvocationEndsBeforeTheHarnessLosesPatience) {
  const auto limit = [](double timeout_s) {
    const auto options = command_options(
        {{"command", {"x"}}, {"patterns", {"(?<latency_ms>x)"}}, {kTimeoutOption, timeout_s}});
    return fill_command(*options, {}).timeout_s;
  };
  EXPECT_EQ(limit(100), 99) << "a second";
  EXPECT_DOUBLE_EQ(limit(10), 9.5) << "or a twentieth";
  EXPECT_EQ(limit(0), 0) << "none";
}

TEST(CommandOptions, AShellIsUsedOnlyWhereItIsAskedFor) {
  const auto argv = [](const Json& more) {
    Json options = {{"command", {"echo", "$HOME; ls"}}, {"patterns", {"(?<latency_ms>x)"}}};
    options.update(more);
    return fill_command(*command_options(options), {}).argv;
  };
  EXPECT_THAT(argv(Json::object()), ElementsAre("echo", "$HOME; ls"));
  EXPECT_THAT(argv({{"shell", false}}), ElementsAre("echo", "$HOME; ls"));
  EXPECT_THAT(argv({{"command", "ls"}, {"shell", true}}), ElementsAre("/bin/sh", "-c", "ls"));
}

TEST(CommandOptions, PlaceholdersInAShellAreQuoted) {
  auto options = command_options({{"command", "run {model} '{{model}}'"},
                                  {"shell", true},
                                  {"workdir", "sub/{batch}"},
                                  {"env", {{"M", "{model}"}}},
                                  {"patterns", {"(?<latency_ms>x)"}},
                                  {"checked_out", {{"folder", "/c"}, {"sha", "abc"}}}});
  ASSERT_TRUE(options) << options.error().message;
  const InvocationSpec spec = fill_command(*options, {{"model", "it's; rm -rf"}, {"batch", "2"}});
  EXPECT_EQ(spec.argv[2], "run 'it'\\''s; rm -rf' '{model}'");
  EXPECT_EQ(spec.folder, "/c/sub/2");
  EXPECT_EQ(spec.environment[0].second, "it's; rm -rf");
  options->workdir = "/elsewhere";
  EXPECT_EQ(fill_command(*options, {}).folder, "/elsewhere");
}

TEST(CommandOptions, WhatIsntAnOptionIsRefused) {
  for (const Json& wrong :
       {Json::object(), Json({{"command", 3}, {"patterns", {"(?<latency_ms>x)"}}}),
        Json({{"command", {"x"}}}), Json({{"command", {"x"}}, {"patterns", {"("}}}),
        Json({{"command", {"x"}}, {"patterns", {"(?<latency_ms>x)"}}, {"env", {{"A", 1}}}})}) {
    EXPECT_FALSE(command_options(wrong)) << to_json_line(wrong);
  }
}

}  // namespace
}  // namespace assay
