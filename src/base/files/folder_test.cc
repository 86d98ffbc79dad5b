#include "base/files/folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <optional>

namespace assay {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// A folder with something of the user's beside it, which must stay as it is.
class FolderTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "assay-folder-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
    fs::create_directories(root_ / "outside");
    fs::create_directories(root_ / "f");
    ASSERT_TRUE(write_file(root_ / "outside/precious", "mine"));
    folder_.emplace(*Folder::open(root_ / "f"));
  }
  void TearDown() override {
    EXPECT_EQ(read_file(root_ / "outside/precious"), "mine");
    EXPECT_EQ(std::distance(fs::directory_iterator(root_ / "outside"), fs::directory_iterator()),
              1);
    fs::remove_all(root_);
  }
  void link(const fs::path& target, const std::string& name) {
    fs::create_symlink(target, root_ / "f" / name);
  }
  // Expects an error that says that it met a link.
  template <typename T>
  void expect_link(const Result<T>& result) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().kind, ErrorKind::kBadInput);
    EXPECT_THAT(result.error().message, HasSubstr("found a symbolic link"));
  }

  fs::path root_;
  std::optional<Folder> folder_;
};

TEST_F(FolderTest, AppendGrowsAndTruncateCuts) {
  ASSERT_TRUE(folder_->make_folder("a/b"));
  {
    auto file = folder_->open_append("a/b/f");
    ASSERT_TRUE(file && (*file)->append("one\n") && (*file)->append("two\n") && (*file)->sync());
  }
  auto file = folder_->open_append("a/b/f");
  ASSERT_TRUE(file && (*file)->append("three\n"));
  EXPECT_EQ(folder_->read("a/b/f"), "one\ntwo\nthree\n");
  ASSERT_TRUE(folder_->truncate("a/b/f", 4));
  ASSERT_TRUE((*file)->append("four\n"));
  EXPECT_EQ(folder_->read("a/b/f"), "one\nfour\n") << "appending goes to where the end is now";
}

TEST_F(FolderTest, WriteRenameAndRemove) {
  ASSERT_TRUE(folder_->write_new("f", "old"));
  EXPECT_FALSE(folder_->write_new("f", "new")) << "it is there";
  ASSERT_TRUE(folder_->write_atomic("f", "new"));
  EXPECT_EQ(folder_->read("f"), "new");
  ASSERT_TRUE(folder_->rename("f", "g"));
  EXPECT_FALSE(folder_->has("f"));
  EXPECT_TRUE(folder_->remove("g"));
  EXPECT_TRUE(folder_->remove("g")) << "a missing one is fine";
  ASSERT_TRUE(folder_->make_folder("d"));
  EXPECT_TRUE(folder_->make_folder("d")) << "one that is there is fine";
  EXPECT_FALSE(folder_->remove("d")) << "a folder isn't removed";
  const Status taken = folder_->write_atomic("d", "text");
  ASSERT_FALSE(taken) << "a folder can't be replaced";
  EXPECT_THAT(taken.error().message, HasSubstr("f/d: expected to write there, found: "));
  ASSERT_EQ(folder_->list()->size(), 1u) << "no temporary file stays";
}

TEST_F(FolderTest, NothingIsReachedThroughAFolderThatIsALink) {
  link(root_ / "outside", "link");
  expect_link(folder_->write_new("link/new", "text"));
  expect_link(folder_->write_atomic("link/precious", "text"));
  expect_link(folder_->open_append("link/precious"));
  expect_link(folder_->truncate("link/precious", 0));
  expect_link(folder_->remove("link/precious"));
  expect_link(folder_->make_folder("link"));
  expect_link(folder_->make_folder("link/below"));
  expect_link(folder_->rename("link/precious", "taken"));
  expect_link(folder_->read("link/precious"));
  expect_link(folder_->open_folder("link"));
  EXPECT_FALSE(folder_->has("link/precious"));
}

TEST_F(FolderTest, NothingIsWrittenOrReadThroughALink) {
  link(root_ / "outside/precious", "link");
  expect_link(folder_->open_append("link"));
  expect_link(folder_->truncate("link", 0));
  expect_link(folder_->read("link"));
  EXPECT_FALSE(folder_->write_new("link", "text"));
  EXPECT_TRUE(folder_->has("link"));
  ASSERT_TRUE(folder_->write_atomic("link", "text")) << "the link itself is replaced";
  EXPECT_EQ(folder_->read("link"), "text");
  link(root_ / "outside/new", "dangling");
  expect_link(folder_->open_append("dangling"));
  ASSERT_TRUE(folder_->remove("dangling"));
}

TEST_F(FolderTest, AHardLinkIsNotAppendedTo) {
  fs::create_hard_link(root_ / "outside/precious", root_ / "f/hard");
  EXPECT_THAT(folder_->open_append("hard").error().message, HasSubstr("found 2 hard links"));
  EXPECT_FALSE(folder_->truncate("hard", 0));
  EXPECT_EQ(folder_->read("hard"), "mine") << "reading does no harm";
}

TEST_F(FolderTest, NamesStayBelow) {
  for (const char* name : {"", ".", "..", "../outside/precious", "a/../../outside/precious", "/f",
                           "a//b", "a/", "./f"}) {
    EXPECT_FALSE(folder_->read(name)) << name;
    EXPECT_FALSE(folder_->write_atomic(name, "text")) << name;
    EXPECT_FALSE(folder_->open_append(name)) << name;
    EXPECT_FALSE(folder_->remove(name)) << name;
    EXPECT_FALSE(folder_->make_folder(name)) << name;
  }
}

TEST_F(FolderTest, OtherKindsAreRefusedAndNotWaitedFor) {
  ASSERT_EQ(::mkfifo((root_ / "f/pipe").c_str(), 0600), 0);
  EXPECT_THAT(folder_->read("pipe").error().message, HasSubstr("found a pipe"));
  EXPECT_FALSE(folder_->open_append("pipe"));
  EXPECT_FALSE(folder_->truncate("pipe", 0));
}

TEST_F(FolderTest, TheListTellsWhatIsThere) {
  ASSERT_TRUE(folder_->make_folder("a/empty"));
  ASSERT_TRUE(folder_->write_atomic("a/file", ""));
  link(root_ / "outside", "link");
  std::vector<std::string> found;
  const auto entries = folder_->list();
  ASSERT_TRUE(entries);
  for (const FolderEntry& entry : *entries) {
    found.push_back(fmt::format("{} {} {}", entry.name, entry.what, entry.is_empty));
  }
  EXPECT_THAT(found,
              testing::ElementsAre("a a folder false", "a/empty a folder true",
                                   "a/file a regular file false", "link a symbolic link false"));
}

TEST_F(FolderTest, AFolderTooDeepIsAnError) {
  fs::path deep = root_ / "f";
  for (int i = 0; i < 20; ++i) deep /= "d";
  fs::create_directories(deep);
  EXPECT_THAT(folder_->list().error().message, HasSubstr("folders within one another"));
}

TEST_F(FolderTest, ALockIsOneWriters) {
  ASSERT_TRUE(folder_->write_atomic("f", ""));
  const auto first = folder_->lock("f");
  ASSERT_TRUE(first && first->ok());
  const auto second = folder_->lock("f");
  ASSERT_TRUE(second);
  EXPECT_FALSE(second->ok());
  EXPECT_FALSE(folder_->lock("missing"));
}

TEST_F(FolderTest, TemporaryNamesAreKnownAndNotGuessed) {
  for (const char* name : {"f", "a/b/evidence.json"}) {
    const std::string temporary = temporary_name(name);
    EXPECT_EQ(temporary_target(temporary), name);
    EXPECT_NE(temporary, temporary_name(name));
  }
  for (const char* name : {"f", "tmp-", "tmp-1", "tmp-x-f", "tmp--f", "tmp-1-f/g", "a-tmp-1-f"}) {
    EXPECT_EQ(temporary_target(name), "") << name;
  }
}

// The writes here meet a limit of 20 bytes a file.
TEST_F(FolderTest, AFullDiskIsTheMachinesFaultAndLeavesTheFormerLength) {
  ASSERT_TRUE(folder_->write_atomic("f", "0123456789"));
  const pid_t pid = ::fork();  // the limit ends with the process
  if (pid == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{20, 20};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    auto file = folder_->open_append("f");
    const Status status = (*file)->append(std::string(30, 'x'));
    const Status whole = folder_->write_atomic("f", std::string(30, 'x'));
    const bool as_expected =
        !status && status.error().kind == ErrorKind::kEnvironment && !whole &&
        whole.error() == status.error() &&
        status.error().message.ends_with("f/f: expected to write there, found: File too large") &&
        (*file)->append("short").has_value();
    ::_exit(as_expected ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(folder_->read("f"), "0123456789short");
  EXPECT_EQ(folder_->list()->size(), 1u) << "no temporary file stays";
}

}  // namespace
}  // namespace assay
