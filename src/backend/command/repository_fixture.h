// Helpers of the tests of revisions: a shell, and a repository of two commits.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>

#include "base/files/temporary_folder.h"
#include "base/process/subprocess.h"

namespace assay {

// Output of a shell's text, which has to succeed.
inline std::string shell(const std::string& command) {
  const auto done = run_command(system_spawner(), {"/bin/sh", "-c", command}, 60);
  EXPECT_TRUE(done && done->end.ok()) << command << (done ? done->err : "");
  return done ? done->out : "";
}

// The second commit prints another figure. Tags `one` and `two` name them.
class RepositoryTest : public testing::Test {
 protected:
  void SetUp() override {
    auto folder = TemporaryFolder::make("assay-command-test-");
    ASSERT_TRUE(folder);
    folder_.emplace(std::move(folder).value());
    repo_ = folder_->path() / "repo";
    make_repository(repo_, "echo 10 ms", "echo 20 ms");
  }

  static void make_repository(const std::filesystem::path& repo, const std::string& one,
                              const std::string& two) {
    shell(
        fmt::format("git init -q '{0}' && cd '{0}' && git config user.email a@b && "
                    "git config user.name n && echo '{1}' > bench.sh && git add . && "
                    "git commit -qm one && git tag one && echo '{2}' > bench.sh && "
                    "git commit -qam two && git tag two",
                    repo.string(), one, two));
  }

  std::string git(const std::string& arguments) const {
    return shell(fmt::format("git -C '{}' {}", repo_.string(), arguments));
  }

  std::optional<TemporaryFolder> folder_;
  std::filesystem::path repo_;
};

}  // namespace assay
