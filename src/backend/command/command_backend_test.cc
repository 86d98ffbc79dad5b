// What a command's arm is here, its revisions' worktrees, and its worker.
#include "backend/command/command_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <fstream>

#include "backend/command/checkouts.h"
#include "backend/command/command_options.h"
#include "backend/command/command_worker.h"
#include "base/temporary_folder.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

std::string shell(const std::string& command) {
  const auto done = run_command(system_spawner(), {"/bin/sh", "-c", command}, 60);
  EXPECT_TRUE(done && done->end.ok()) << command << (done ? done->err : "");
  return done ? done->out : "";
}

LoadRequest load_of(const Json& options, const std::string& mode = "") {
  LoadRequest request;
  request.model = "models/it's";
  request.mode = mode;
  request.options = options;
  return request;
}

// A repository of two commits, of which the second prints another figure.
class CommandBackendTest : public testing::Test {
 protected:
  void SetUp() override {
    auto folder = TemporaryFolder::make("assay-command-test-");
    ASSERT_TRUE(folder);
    folder_.emplace(std::move(folder).value());
    repo_ = folder_->path() / "repo";
    shell(fmt::format(
        "git init -q {0} && cd {0} && git config user.email a@b && git config user.name n && "
        "echo 'echo 10 ms' > bench.sh && git add . && git commit -qm one && git tag one && "
        "echo 'echo 20 ms' > bench.sh && git commit -qam two && git tag two",
        repo_.string()));
  }

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

  std::optional<TemporaryFolder> folder_;
  fs::path repo_;
};

TEST_F(CommandBackendTest, RevisionsAreWorktreesThatGoWithTheRun) {
  fs::path one, two;
  {
    Checkouts checkouts(system_spawner());
    const auto first = checkouts.get(repo_.string(), "one");
    ASSERT_TRUE(first) << first.error().message;
    const auto second = checkouts.get(repo_.string(), "two");
    ASSERT_TRUE(second) << second.error().message;
    one = first->folder;
    two = second->folder;
    EXPECT_EQ(shell("cat " + one.string() + "/bench.sh"), "echo 10 ms\n");
    EXPECT_EQ(shell("cat " + two.string() + "/bench.sh"), "echo 20 ms\n");
    EXPECT_EQ(first->sha + "\n", shell("git -C " + repo_.string() + " rev-parse one"));
    EXPECT_EQ(one.string().find(repo_.string()), std::string::npos) << "outside of the repository";
    EXPECT_EQ(checkouts.get(repo_.string(), "one")->folder, one);
  }
  EXPECT_FALSE(fs::exists(one));
  EXPECT_FALSE(fs::exists(two.parent_path()));
  EXPECT_EQ(shell("git -C " + repo_.string() + " worktree list | wc -l"), "1\n");
}

TEST_F(CommandBackendTest, TheFolderAsItIsIsDirtyWhereItWasChanged) {
  Checkouts clean(system_spawner());
  EXPECT_EQ(clean.get(repo_.string(), kAsItIs)->folder, fs::canonical(repo_));
  EXPECT_FALSE(clean.get(repo_.string(), kAsItIs)->sha.ends_with("-dirty"));
  std::ofstream(repo_ / "new") << "x";
  Checkouts changed(system_spawner());
  EXPECT_TRUE(changed.get(repo_.string(), kAsItIs)->sha.ends_with("-dirty"));
}

TEST_F(CommandBackendTest, TwoStatesOfOneCommitAreNotTakenForOne) {
  const auto sha = [&] {
    Checkouts checkouts(system_spawner());
    return checkouts.get(repo_.string(), kAsItIs)->sha;
  };
  std::ofstream(repo_ / "bench.sh") << "echo 30 ms";
  const std::string thirty = sha();
  EXPECT_EQ(sha(), thirty);
  std::ofstream(repo_ / "result.json") << "{}";
  EXPECT_EQ(sha(), thirty) << "a new file may be a result of the first run";
  std::ofstream(repo_ / "bench.sh") << "echo 40 ms";
  EXPECT_NE(sha(), thirty);
  shell("git -C " + repo_.string() + " add bench.sh");
  const std::string staged = sha();
  EXPECT_TRUE(staged.ends_with("-dirty")) << staged;
  EXPECT_NE(staged, thirty);
}

TEST_F(CommandBackendTest, AFolderInsideARepositoryIsThatFolderOfTheRevision) {
  shell(
      fmt::format("cd {} && mkdir -p a/b && echo 'echo 50 ms' > a/b/inner.sh && git add . && "
                  "git commit -qm inner && git tag inner",
                  repo_.string()));
  Checkouts checkouts(system_spawner());
  const auto inner = checkouts.get((repo_ / "a/b").string(), "inner");
  ASSERT_TRUE(inner) << inner.error().message;
  EXPECT_EQ(shell("cat " + inner->folder.string() + "/inner.sh"), "echo 50 ms\n");
}

// A repository whose configuration and hooks name programs, all of which leave a mark.
TEST_F(CommandBackendTest, NothingThatTheRepositoryNamesRunsAndItsIndexStays) {
  const fs::path mark = folder_->path() / "ran";
  const fs::path program = folder_->path() / "program";
  std::ofstream(program) << "#!/bin/sh\necho $0 >> " << mark.string() << "\nprintf '/\\0'\n";
  fs::permissions(program, fs::perms::owner_all);
  for (const char* hook : {"post-checkout", "post-index-change", "reference-transaction"}) {
    fs::create_directories(repo_ / ".git/hooks");
    fs::copy(program, repo_ / ".git/hooks" / hook);
  }
  const std::string config = "git -C " + repo_.string() + " config ";
  shell(config + "core.fsmonitor " + program.string() + " && " + config + "diff.external " +
        program.string() + " && " + config + "status.showUntrackedFiles no");
  // Touched, so that git would refresh its index.
  std::ofstream(repo_ / "bench.sh") << "echo 20 ms\n";
  fs::last_write_time(repo_ / "bench.sh", fs::file_time_type::clock::now() + std::chrono::hours(1));
  const auto index = [&] { return shell("sha256sum " + (repo_ / ".git/index").string()); };
  fs::remove(mark);
  const std::string before = index();
  {
    Checkouts checkouts(system_spawner());
    ASSERT_TRUE(checkouts.get(repo_.string(), "one"));
    const auto clean = checkouts.get(repo_.string(), kAsItIs);
    ASSERT_TRUE(clean) << clean.error().message;
    EXPECT_EQ(clean->sha.size(), 40u) << clean->sha;
    const auto worker = make_command_worker("1", system_spawner());
    ASSERT_TRUE(worker->load(
        load_of({{"command", {"sh", "bench.sh"}},
                 {"patterns", {"(?<latency_ms>\\d+) ms"}},
                 {"checked_out", {{"folder", clean->folder.string()}, {"sha", clean->sha}}}})));
    const Json evidence = worker->evidence({Phase::kE2eKv})->evidence;
    EXPECT_EQ(evidence["actual"]["checkout"]["files_changed"], false);
  }
  EXPECT_FALSE(fs::exists(mark)) << shell("cat " + mark.string());
  EXPECT_EQ(index(), before);
  std::ofstream(repo_ / "new") << "x";
  Checkouts changed(system_spawner());
  EXPECT_TRUE(changed.get(repo_.string(), kAsItIs)->sha.ends_with("-dirty"))
      << "whatever the configuration shows of new files";
}

// As where assay runs in a hook of git, or under `git bisect run`.
TEST_F(CommandBackendTest, VariablesOfAnotherRepositoryDontCount) {
  const fs::path other = folder_->path() / "other";
  shell("git init -q " + other.string());
  ::setenv("GIT_DIR", (other / ".git").c_str(), 1);
  ::setenv("GIT_INDEX_FILE", (other / ".git/index").c_str(), 1);
  {
    Checkouts checkouts(system_spawner());
    const auto one = checkouts.get(repo_.string(), "one");
    EXPECT_TRUE(one) << one.error().message;
    const auto clean = checkouts.get(repo_.string(), kAsItIs);
    EXPECT_EQ(clean->sha.size(), 40u) << clean->sha;
  }
  ::unsetenv("GIT_DIR");
  ::unsetenv("GIT_INDEX_FILE");
}

TEST_F(CommandBackendTest, WhatIsntThereIsNamed) {
  Checkouts checkouts(system_spawner());
  EXPECT_THAT(checkouts.get(repo_.string(), "three").error().message,
              HasSubstr("expected a revision of"));
  EXPECT_THAT(checkouts.get(folder_->path().string(), "one").error().message,
              HasSubstr("expected a git repository"));
  EXPECT_THAT(checkouts.get("/no/such/place", "one").error().message, HasSubstr("/no/such/place"));
}

TEST_F(CommandBackendTest, TheGateKnowsCommitProgramAndFiles) {
  const auto backend = make_command_backend("assay", system_spawner());
  const ArmGate one = backend->gate(arm("one"));
  EXPECT_EQ(one.verdict, ArmGate::Verdict::kReady) << one.reason;
  EXPECT_EQ(one.code_sha.size(), 40u);
  EXPECT_THAT(one.program["path"].get<std::string>(), HasSubstr("/sh"));
  EXPECT_EQ(one.facts["files"].size(), 1u) << "the script";
  const ArmGate two = backend->gate(arm("two"));
  EXPECT_NE(two.code_sha, one.code_sha);
  EXPECT_NE(two.facts["files"], one.facts["files"]);
  EXPECT_EQ(two.framework_build, one.framework_build) << "the commit says what differs";
  const ArmGate none = backend->gate(arm("three"));
  EXPECT_EQ(none.verdict, ArmGate::Verdict::kImpossible);
  EXPECT_EQ(none.error_class, "no_checkout");

  StudyArm missing = arm("one");
  missing.options.erase("checkout");
  missing.options["command"] = {"no-such-program-anywhere"};
  EXPECT_EQ(backend->gate(missing).error_class, "no_program");
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
  EXPECT_THAT((std::vector{first->latency_ns, second->latency_ns}),
              ElementsAre(8'000'000, 4'000'000));
  EXPECT_FALSE(first->recalled);
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
