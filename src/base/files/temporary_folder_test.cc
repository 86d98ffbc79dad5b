// Folders that go with their owner, and those whose owner was killed.
#include "base/files/temporary_folder.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <string>

#include "base/files/files.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "assay-test.";

// $TMPDIR is a folder of the test's own.
class TemporaryFolderTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "assay-temporary-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
    if (const char* before = std::getenv("TMPDIR")) before_ = before;
    ::setenv("TMPDIR", root_.c_str(), 1);
  }
  void TearDown() override {
    before_.empty() ? ::unsetenv("TMPDIR") : ::setenv("TMPDIR", before_.c_str(), 1);
    fs::remove_all(root_);
  }

  // The folder of a process that was killed.
  fs::path left() {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      const auto folder = TemporaryFolder::make(kPrefix);
      const std::string path = folder->path();
      static_cast<void>(!write_file(folder->path() / "file", "x"));
      static_cast<void>(::write(ends[1], path.data(), path.size()));
      ::raise(SIGKILL);
    }
    std::string path(1000, ' ');
    path.resize(
        static_cast<size_t>(std::max<ssize_t>(::read(ends[0], path.data(), path.size()), 0)));
    ::waitpid(child, nullptr, 0);
    ::close(ends[0]);
    ::close(ends[1]);
    return path;
  }

  fs::path root_;
  std::string before_;
};

TEST_F(TemporaryFolderTest, GoesWithItsOwner) {
  fs::path path;
  {
    auto made = TemporaryFolder::make(kPrefix);
    ASSERT_TRUE(made);
    const TemporaryFolder moved = std::move(made).value();
    path = moved.path();
    EXPECT_TRUE(is_temporary_name(path.filename().string(), kPrefix));
    ASSERT_TRUE(write_file(path / "file", "x"));
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(TemporaryFolderTest, OfAKilledProcessIsRemovedAndNoOther) {
  const fs::path killed = left();
  ASSERT_TRUE(fs::exists(killed / "file"));
  const auto living = TemporaryFolder::make(kPrefix);
  const auto other_prefix = root_ / "assay-other.abcdef";
  const auto other_name = root_ / "assay-test.longer-name";
  const auto file = root_ / "assay-test.isfile";
  const auto link = root_ / "assay-test.link00";
  fs::create_directory(other_prefix);
  fs::create_directory(other_name);
  fs::create_directory_symlink(other_prefix, link);
  ASSERT_TRUE(write_file(file, "x"));
  remove_left_folders(kPrefix);
  EXPECT_FALSE(fs::exists(killed));
  EXPECT_TRUE(fs::exists(living->path()));
  for (const fs::path& kept : {other_prefix, other_name, file, link}) {
    EXPECT_TRUE(fs::exists(kept)) << kept;
  }
}

TEST_F(TemporaryFolderTest, IsLockedByOneAtATime) {
  const auto living = TemporaryFolder::make(kPrefix);
  EXPECT_FALSE(lock_left_folder(living->path()).ok());
  const fs::path killed = left();
  const Descriptor lock = lock_left_folder(killed);
  EXPECT_TRUE(lock.ok());
  EXPECT_FALSE(lock_left_folder(killed).ok());
  EXPECT_FALSE(lock_left_folder(root_ / "nothing").ok());
}

TEST_F(TemporaryFolderTest, WithoutAPlaceIsAnError) {
  ::setenv("TMPDIR", (root_ / "nowhere").c_str(), 1);
  const auto made = TemporaryFolder::make(kPrefix);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().kind, ErrorKind::kEnvironment);
}

}  // namespace
}  // namespace assay
