// Revisions of repositories as people have them: tags and short names, submodules, bare and shallow
// ones, and leftovers of a killed run.
#include "backend/command/checkouts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <fstream>

#include "backend/command/command_worker.h"
#include "backend/command/repository_fixture.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class CheckoutsTest : public RepositoryTest {
 protected:
  std::string sha_of(const std::string& revision, const fs::path& repo) const {
    Checkouts checkouts(system_spawner());
    const auto& made = checkouts.get(repo.string(), revision);
    return made ? made->sha : made.error().message;
  }
  std::string sha_of(const std::string& revision) const { return sha_of(revision, repo_); }

  // A repository whose tags `one` and `two` hold the same tags of repo_ as the submodule `lib`.
  fs::path make_superproject() const {
    const fs::path super = folder_->path() / "super";
    make_repository(super, "sh lib/bench.sh", "sh ./lib/bench.sh");
    const std::string in = "cd " + super.string() + " && ";
    shell(in + "git tag -d one two && git -c protocol.file.allow=always submodule add -q " +
          repo_.string() + " lib && git -C lib checkout -q one && git add . && git commit -qm one");
    shell(in + "git tag one && git -C lib checkout -q two && git commit -qam two && git tag two");
    return super;
  }

  // Output of the revision's benchmark.
  static std::string printed(const Result<Checkout>& checkout) {
    if (!checkout) return checkout.error().message;
    return shell(fmt::format("cd '{}' && sh bench.sh", checkout->folder.string()));
  }

  static std::string worktrees_of(const fs::path& repo) {
    return shell(fmt::format("git -C '{}' worktree list | wc -l", repo.string()));
  }
};

TEST_F(CheckoutsTest, RevisionsAreWorktreesThatGoWithTheRun) {
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

TEST_F(CheckoutsTest, TheFolderAsItIsIsDirtyWhereItWasChanged) {
  Checkouts clean(system_spawner());
  EXPECT_EQ(clean.get(repo_.string(), kAsItIs)->folder, fs::canonical(repo_));
  EXPECT_FALSE(clean.get(repo_.string(), kAsItIs)->sha.ends_with("-dirty"));
  std::ofstream(repo_ / "new") << "x";
  Checkouts changed(system_spawner());
  EXPECT_TRUE(changed.get(repo_.string(), kAsItIs)->sha.ends_with("-dirty"));
}

TEST_F(CheckoutsTest, TwoStatesOfOneCommitAreNotTakenForOne) {
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

TEST_F(CheckoutsTest, AFolderInsideARepositoryIsThatFolderOfTheRevision) {
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
TEST_F(CheckoutsTest, NothingThatTheRepositoryNamesRunsAndItsIndexStays) {
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
    LoadRequest request;
    request.options = {{"command", {"sh", "bench.sh"}},
                       {"patterns", {"(?<latency_ms>\\d+) ms"}},
                       {"checked_out", {{"folder", clean->folder.string()}, {"sha", clean->sha}}}};
    ASSERT_TRUE(worker->load(request));
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

// Git fetches by itself the objects that a partial clone lacks, by a program of its configuration.
TEST_F(CheckoutsTest, WhatAPartialCloneLacksIsNotFetched) {
  const fs::path mark = folder_->path() / "ran";
  const fs::path program = folder_->path() / "program";
  std::ofstream(program) << "#!/bin/sh\necho \"$*\" >> " << mark.string() << "\nexit 1\n";
  fs::permissions(program, fs::perms::owner_all);
  git("config uploadpack.allowFilter true");
  const fs::path clone = folder_->path() / "partial";
  shell("git clone -q --filter=blob:none 'file://" + repo_.string() + "' " + clone.string());
  const std::string config = "git -C " + clone.string() + " config ";
  for (const char* key :
       {"remote.origin.uploadpack", "core.sshCommand", "core.gitProxy", "core.askPass"}) {
    shell(fmt::format("{}{} '{}'", config, key, program.string()));
  }
  for (const char* key : {"submodule.x.update", "credential.helper"}) {
    shell(fmt::format("{}{} '!{}'", config, key, program.string()));
  }
  for (const char* setting :
       {"protocol.allow always", "protocol.ext.allow always", "submodule.recurse true"}) {
    shell(config + setting);
  }
  const std::vector<std::string> urls = {"file://" + repo_.string(), repo_.string(),
                                         "ssh://localhost/repo", "git://localhost/repo",
                                         "ext::" + program.string()};
  for (const std::string& url : urls) {
    shell(config + "remote.origin.url '" + url + "'");
    Checkouts checkouts(system_spawner());
    const auto lacking = checkouts.get(clone.string(), "one");
    EXPECT_FALSE(fs::exists(mark)) << url << " ran " << shell("cat " + mark.string());
    ASSERT_FALSE(lacking) << url;
    EXPECT_THAT(lacking.error().message, HasSubstr("a partial clone, and nothing is fetched"));
    const auto there = checkouts.get(clone.string(), "two");
    ASSERT_TRUE(there) << there.error().message;
    EXPECT_EQ(shell("cat " + there->folder.string() + "/bench.sh"), "echo 20 ms\n");
  }
}

// These variables are set where assay runs in a hook of git, or under `git bisect run`.
TEST_F(CheckoutsTest, VariablesOfAnotherRepositoryDontCount) {
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

TEST_F(CheckoutsTest, WhatIsntThereIsNamed) {
  Checkouts checkouts(system_spawner());
  EXPECT_THAT(checkouts.get(repo_.string(), "three").error().message,
              HasSubstr("expected a revision of"));
  EXPECT_THAT(checkouts.get(folder_->path().string(), "one").error().message,
              HasSubstr("expected a git repository"));
  EXPECT_THAT(checkouts.get("/no/such/place", "one").error().message, HasSubstr("/no/such/place"));
}

TEST_F(CheckoutsTest, WhateverNamesACommitIsThatCommit) {
  git("tag -a -m words annotated one");
  git("branch feature/x one");
  const std::string one = sha_of("one");
  EXPECT_EQ(one + "\n", git("rev-parse one"));
  for (const std::string& revision :
       {std::string("annotated"), std::string("feature/x"), std::string("two~1"), one,
        one.substr(0, 12), std::string("refs/tags/one")}) {
    EXPECT_EQ(sha_of(revision), one) << revision;
  }
  EXPECT_THAT(sha_of("one..two"), HasSubstr("expected a revision of"));
  EXPECT_THAT(sha_of("two:bench.sh"), HasSubstr("expected a revision of"));
}

TEST_F(CheckoutsTest, TwoNamesOfOneCommitHaveAWorktreeEach) {
  git("branch same two");
  Checkouts checkouts(system_spawner());
  const auto two = checkouts.get(repo_.string(), "two");
  const auto same = checkouts.get(repo_.string(), "same");
  ASSERT_TRUE(two && same);
  EXPECT_EQ(two->sha, same->sha);
  EXPECT_NE(two->folder, same->folder);
}

// Commits of the empty tree, two of which have names that begin alike.
TEST_F(CheckoutsTest, AShortNameOfSeveralCommitsIsSaidToBeOne) {
  const auto commit = [&](int second) {
    return shell(
        fmt::format("cd {0} && git mktree </dev/null >/dev/null && GIT_AUTHOR_DATE='{1} +0000' "
                    "GIT_COMMITTER_DATE='{1} +0000' git -c user.name=n -c user.email=a@b "
                    "commit-tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904 -m x",
                    repo_.string(), 1'700'000'000 + second));
  };
  const std::string first = commit(28);
  const std::string prefix = first.substr(0, 4);
  ASSERT_EQ(commit(515).substr(0, 4), prefix);
  EXPECT_THAT(
      sha_of(prefix),
      HasSubstr(fmt::format("found \"{}\", which the names of 2 objects begin with", prefix)));
  EXPECT_EQ(sha_of(first.substr(0, 8)), first.substr(0, 40));
}

TEST_F(CheckoutsTest, ABareRepositoryHasRevisionsAndNoFolderAsItIs) {
  const fs::path bare = folder_->path() / "bare.git";
  shell(fmt::format("git clone -q --bare {} {}", repo_.string(), bare.string()));
  {
    Checkouts checkouts(system_spawner());
    EXPECT_EQ(printed(checkouts.get(bare.string(), "one")), "10 ms\n");
    EXPECT_THAT(checkouts.get(bare.string(), kAsItIs).error().message,
                HasSubstr("found a bare repository"));
  }
  EXPECT_EQ(worktrees_of(bare), "1\n");
}

TEST_F(CheckoutsTest, AShallowCloneSaysThatItIsOne) {
  const fs::path shallow = folder_->path() / "shallow";
  shell(fmt::format("git clone -q --depth 1 file://{} {}", repo_.string(), shallow.string()));
  EXPECT_EQ(sha_of("HEAD", shallow), sha_of("two"));
  EXPECT_THAT(sha_of("one", shallow), HasSubstr("found \"one\" in a shallow clone"));
}

TEST_F(CheckoutsTest, APathMayHaveSpacesQuotesAndLettersOfAnyLanguage) {
  const fs::path repo = folder_->path() / "söme dir" / "ré \"po\"";
  fs::create_directories(repo);
  make_repository(repo, "echo 10 ms", "echo 20 ms");
  {
    Checkouts checkouts(system_spawner());
    EXPECT_EQ(printed(checkouts.get(repo.string(), "one")), "10 ms\n");
  }
  EXPECT_EQ(worktrees_of(repo), "1\n");
}

TEST_F(CheckoutsTest, ARepositoryInWhichGitCantWriteIsNamed) {
  std::ofstream(repo_ / ".git/worktrees") << "no folder";
  const std::string problem = sha_of("one");
  EXPECT_THAT(problem, HasSubstr("checkout: expected to make a worktree of " + repo_.string()));
  EXPECT_EQ(problem.find('\n'), std::string::npos);
}

TEST_F(CheckoutsTest, SubmodulesAreWhatTheRevisionPins) {
  const fs::path super = make_superproject();
  fs::path lib;
  {
    Checkouts checkouts(system_spawner());
    const auto one = checkouts.get(super.string(), "one");
    EXPECT_EQ(printed(one), "10 ms\n");
    EXPECT_EQ(printed(checkouts.get(super.string(), "two")), "20 ms\n");
    ASSERT_TRUE(one);
    lib = one->folder / "lib";
    const std::string status = "git -C " + one->folder.string() + " status --porcelain";
    EXPECT_EQ(shell(status), "") << "as the commit has it";
  }
  EXPECT_FALSE(fs::exists(lib));
  EXPECT_EQ(worktrees_of(super), "1\n");
  EXPECT_EQ(worktrees_of(super / "lib"), "1\n");
}

TEST_F(CheckoutsTest, SubmodulesOfSubmodulesToo) {
  const fs::path super = make_superproject();
  const fs::path outer = folder_->path() / "outer";
  make_repository(outer, "sh mid/bench.sh", "sh ./mid/bench.sh");
  shell("cd " + outer.string() + " && git -c protocol.file.allow=always submodule add -q " +
        super.string() + " mid && git -C mid checkout -q one && " +
        "git -c protocol.file.allow=always submodule update -q --init --recursive mid && "
        "cd mid && git -c protocol.file.allow=always submodule update -q --init && cd .. && "
        "sed -i 's,mid/bench,mid/lib/bench,' bench.sh && git -C mid checkout -q one && "
        "git add . && git commit -qm deep && git tag deep");
  {
    Checkouts checkouts(system_spawner());
    EXPECT_EQ(printed(checkouts.get(outer.string(), "deep")), "10 ms\n");
  }
  for (const char* inside : {".", "mid", "mid/lib"}) EXPECT_EQ(worktrees_of(outer / inside), "1\n");
}

TEST_F(CheckoutsTest, ASubmoduleThatIsntCheckedOutIsAnEmptyFolder) {
  const fs::path super = make_superproject();
  const fs::path clone = folder_->path() / "clone";
  shell(fmt::format("git clone -q {} {}", super.string(), clone.string()));
  Checkouts checkouts(system_spawner());
  const auto one = checkouts.get(clone.string(), "one");
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_TRUE(fs::is_empty(one->folder / "lib")) << "nothing is fetched";
}

TEST_F(CheckoutsTest, ASubmodulesCommitThatItsCloneLacksIsNamed) {
  const fs::path super = make_superproject();
  shell(
      fmt::format("cd {} && git update-index --cacheinfo 160000,{},lib && git commit -qm gone && "
                  "git tag gone",
                  super.string(), std::string(40, '1')));
  const std::string problem = sha_of("gone", super);
  EXPECT_THAT(problem, HasSubstr("expected the commit 1111"));
  EXPECT_THAT(problem, HasSubstr("of the submodule \"lib\" in " + (super / "lib").string()));
  EXPECT_EQ(worktrees_of(super), "1\n") << "what was made before it is gone too";
}

TEST_F(CheckoutsTest, TwoStatesOfASubmoduleAreNotTakenForOne) {
  const fs::path super = make_superproject();
  const auto state = [&] { return sha_of(kAsItIs, super); };
  EXPECT_EQ(state().size(), 40u) << state();
  std::ofstream(super / "lib/result.json") << "{}";
  EXPECT_EQ(state(), sha_of("two", super) + "-dirty");
  std::ofstream(super / "lib/bench.sh") << "echo 30 ms";
  const std::string thirty = state();
  std::ofstream(super / "lib/other.json") << "{}";
  EXPECT_EQ(state(), thirty) << "a new file may be a result of the first run";
  std::ofstream(super / "lib/bench.sh") << "echo 40 ms";
  EXPECT_NE(state(), thirty);
  shell("git -C " + (super / "lib").string() + " checkout -q -f one");
  const std::string other_commit = state();
  EXPECT_TRUE(other_commit.ends_with("-dirty")) << other_commit;
  EXPECT_NE(other_commit, thirty);
}

// A home as a killed run leaves it: nobody holds its lock.
fs::path left_home(const std::string& name = "assay-checkout-XXXXXX") {
  return shell(
      fmt::format("printf %s $(mktemp -d {}/{})", fs::temp_directory_path().string(), name));
}

TEST_F(CheckoutsTest, WorktreesOfAKilledRunGoWithTheNextAndNoOthers) {
  const fs::path left = left_home();
  const fs::path elsewhere = left_home();
  const fs::path own = left_home("mine-XXXXXX");
  for (const fs::path& each : {left, elsewhere, own}) {
    git(fmt::format("worktree add --detach --quiet {}/repo one", each.string()));
  }
  fs::remove_all(elsewhere);
  {
    Checkouts running(system_spawner());
    const auto in_use = running.get(repo_.string(), "one");
    ASSERT_TRUE(in_use) << in_use.error().message;
    EXPECT_FALSE(fs::exists(left));
    Checkouts another(system_spawner());
    ASSERT_TRUE(another.get(repo_.string(), "two"));
    EXPECT_TRUE(fs::exists(in_use->folder / ".git")) << "its process lives";
    EXPECT_TRUE(fs::exists(own / "repo/.git")) << "not one of assay's";
    const std::string all = git("worktree list");
    EXPECT_THAT(all, HasSubstr(in_use->folder.string()));
    EXPECT_THAT(all, HasSubstr(own.string()));
    EXPECT_THAT(all, HasSubstr(elsewhere.string())) << "another container may see its folder";
    EXPECT_EQ(all.find(left.string()), std::string::npos);
  }
  EXPECT_EQ(worktrees_of(repo_), "3\n");
  git(fmt::format("worktree remove {}/repo", own.string()));
  fs::remove_all(own);
}

TEST_F(CheckoutsTest, WorktreesOfSubmodulesOfAKilledRunGoToo) {
  const fs::path super = make_superproject();
  const fs::path left = left_home();
  const std::string add = "worktree add --detach --quiet " + left.string();
  shell("cd " + super.string() + " && git " + add + "/super one && git -C lib " + add +
        "/super/lib one");
  {
    Checkouts checkouts(system_spawner());
    EXPECT_EQ(printed(checkouts.get(super.string(), "one")), "10 ms\n");
  }
  EXPECT_FALSE(fs::exists(left));
  EXPECT_EQ(worktrees_of(super), "1\n");
  EXPECT_EQ(worktrees_of(super / "lib"), "1\n");
}

}  // namespace
}  // namespace assay
