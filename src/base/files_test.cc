#include "base/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace assay {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class Files : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "assay-files-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(folder_); }

  size_t files_in_folder() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  fs::path folder_;
};

std::string text_of(const MappedFile& file) {
  const auto bytes = file.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST_F(Files, WriteReadAndMapAgree) {
  const std::string binary("a\0b\r\n\xff", 6);
  for (const std::string& content : {std::string(), binary, std::string(200'000, 'x')}) {
    ASSERT_TRUE(write_file(folder_ / "f", content));
    EXPECT_EQ(read_file(folder_ / "f"), content);
    const auto mapped = MappedFile::open(folder_ / "f");
    ASSERT_TRUE(mapped);
    EXPECT_EQ(text_of(*mapped), content);
  }
  EXPECT_EQ(files_in_folder(), 1u) << "no temporary file stays";
}

TEST_F(Files, AMovedMappingStaysValid) {
  ASSERT_TRUE(write_file(folder_ / "f", "content"));
  MappedFile kept;
  {
    auto mapped = MappedFile::open(folder_ / "f");
    ASSERT_TRUE(mapped);
    kept = *std::move(mapped);
  }
  fs::remove(folder_ / "f");
  EXPECT_EQ(text_of(kept), "content");
  const MappedFile again(std::move(kept));
  EXPECT_EQ(text_of(again), "content");
  // By contract a mapping that was moved from is empty.
  EXPECT_TRUE(kept.bytes().empty());  // NOLINT(bugprone-use-after-move)
}

TEST_F(Files, WhatCannotBeReadIsBadInput) {
  for (const char* name : {"missing", "", "missing/below"}) {
    for (const auto& error :
         {read_file(folder_ / name).error(), MappedFile::open(folder_ / name).error()}) {
      EXPECT_EQ(error.kind, ErrorKind::kBadInput);
      EXPECT_THAT(error.message, HasSubstr((folder_ / name).string() + ": expected"));
      EXPECT_EQ(error.message.find('\n'), std::string::npos);
    }
  }
}

TEST_F(Files, AtomicWriteReplacesWholeOrNotAtAll) {
  ASSERT_TRUE(write_file(folder_ / "f", "old"));
  const auto old = MappedFile::open(folder_ / "f");
  ASSERT_TRUE(write_file(folder_ / "f", "the new content"));
  EXPECT_EQ(text_of(*old), "old") << "a reader keeps what it opened";
  EXPECT_EQ(read_file(folder_ / "f"), "the new content");
  ASSERT_TRUE(disk().make_folder(folder_ / "taken/by"));
  EXPECT_FALSE(write_file(folder_ / "taken", "text")) << "a folder can't be replaced";
  EXPECT_EQ(files_in_folder(), 2u);
}

TEST_F(Files, AppendGrowsAndTruncateCuts) {
  {
    auto file = disk().open_append(folder_ / "f");
    ASSERT_TRUE(file && (*file)->append("one\n") && (*file)->append("two\n") && (*file)->sync());
  }
  auto file = disk().open_append(folder_ / "f");
  ASSERT_TRUE(file && (*file)->append("three\n"));
  EXPECT_EQ(read_file(folder_ / "f"), "one\ntwo\nthree\n");
  ASSERT_TRUE(disk().truncate(folder_ / "f", 4));
  ASSERT_TRUE((*file)->append("four\n"));
  EXPECT_EQ(read_file(folder_ / "f"), "one\nfour\n") << "appending goes to where the end is now";
}

TEST_F(Files, RemoveAcceptsWhatIsGone) {
  ASSERT_TRUE(write_file(folder_ / "f", ""));
  EXPECT_TRUE(disk().remove(folder_ / "f"));
  EXPECT_FALSE(fs::exists(folder_ / "f"));
  EXPECT_TRUE(disk().remove(folder_ / "f"));
  EXPECT_FALSE(disk().remove(folder_)) << "a folder isn't removed";
}

TEST_F(Files, FoldersAreMadeWithTheirParents) {
  EXPECT_TRUE(disk().make_folder(folder_ / "a/b/c"));
  EXPECT_TRUE(disk().make_folder(folder_ / "a/b/c")) << "one that exists is fine";
  EXPECT_TRUE(fs::is_directory(folder_ / "a/b/c"));
}

TEST_F(Files, APathThatCannotBeWrittenIsTheUsersFault) {
  ASSERT_TRUE(write_file(folder_ / "file", ""));
  for (const Status& status :
       {disk().make_folder(folder_ / "file/below"), disk().make_folder("/proc/assay"),
        write_file(folder_ / "file/below", ""), write_file("/proc/assay", ""),
        write_file(folder_ / "no/folder", ""), disk().truncate(folder_ / "missing", 0)}) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().kind, ErrorKind::kBadInput) << status.error().message;
    EXPECT_THAT(status.error().message, HasSubstr(": expected to write there, found: "));
  }
  const auto file = disk().open_append(folder_ / "file/below");
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().kind, ErrorKind::kBadInput);
}

TEST_F(Files, AFullDiskIsTheMachinesFault) {
  const Status status = (*disk().open_append("/dev/full"))->append("text");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::kEnvironment);
  EXPECT_THAT(status.error().message,
              HasSubstr("/dev/full: expected to write there, found: No space"));
}

TEST_F(Files, AFailedAppendLeavesTheFormerLength) {
  ASSERT_TRUE(write_file(folder_ / "f", "0123456789"));
  const pid_t pid = ::fork();  // the limit ends with the process
  if (pid == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{20, 20};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    auto file = disk().open_append(folder_ / "f");
    const Status status = (*file)->append(std::string(30, 'x'));
    const bool as_expected = !status && status.error().kind == ErrorKind::kEnvironment &&
                             (*file)->append("short").has_value();
    ::_exit(as_expected ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(read_file(folder_ / "f"), "0123456789short");
}

}  // namespace
}  // namespace assay
