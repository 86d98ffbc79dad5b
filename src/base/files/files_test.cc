#include "base/files/files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>

#include "base/files/folder.h"
#include "base/files/hash.h"
#include "base/files/mapped_file.h"

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

// Megabytes of the process that lie in memory.
double resident_mb() {
  std::ifstream words("/proc/self/statm");
  double all = 0, resident = 0;
  words >> all >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e6;
}

TEST_F(Files, PagesThatAreDroppedLeaveTheProcessAndKeepTheirBytes) {
  ASSERT_TRUE(write_file(folder_ / "f", std::string(64'000'000, 'x')));
  const auto mapped = MappedFile::open(folder_ / "f");
  ASSERT_TRUE(mapped);
  const auto count = [&] { return std::ranges::count(mapped->bytes(), std::byte{'x'}); };
  const double before = resident_mb();
  EXPECT_EQ(count(), 64'000'000);
  EXPECT_GT(resident_mb(), before + 60);
  mapped->drop_pages();
  EXPECT_LT(resident_mb(), before + 4);
  EXPECT_EQ(count(), 64'000'000);
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
  // A mapping that was moved from is empty by contract.
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

TEST_F(Files, OnlyRegularFilesAreRead) {
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const std::vector<std::pair<fs::path, const char*>> cases = {
      {pipe, "a pipe"}, {"/dev/zero", "a device"}, {folder_, "a folder"}};
  for (const auto& [path, what] : cases) {
    for (const auto& error :
         {read_file(path).error(), MappedFile::open(path).error(), sha256_file_hex(path).error()}) {
      EXPECT_EQ(error.kind, ErrorKind::kBadInput);
      EXPECT_EQ(error.message, path.string() + ": expected a regular file, found " + what);
    }
  }
}

TEST_F(Files, AFileIsNotReadBeyondItsBound) {
  ASSERT_TRUE(write_file(folder_ / "f", "12345"));
  EXPECT_EQ(read_file(folder_ / "f", 5), "12345");
  EXPECT_EQ(read_file(folder_ / "f", 4).error().message,
            (folder_ / "f").string() + ": expected at most 4 bytes, found 5");
  // A hole of a terabyte takes no room on the disk, and would in memory.
  fs::resize_file(folder_ / "f", uint64_t{1} << 40);
  EXPECT_EQ(read_file(folder_ / "f").error().kind, ErrorKind::kBadInput);
  EXPECT_FALSE(read_file("/proc/self/status", 10)) << "its size is said to be 0";
  EXPECT_TRUE(read_file("/proc/self/status"));
}

TEST_F(Files, ALinkIsReplacedNotFollowed) {
  ASSERT_TRUE(write_file(folder_ / "target", "kept"));
  fs::create_symlink("target", folder_ / "link");
  ASSERT_TRUE(write_file(folder_ / "link", "new"));
  EXPECT_EQ(read_file(folder_ / "target"), "kept");
  EXPECT_EQ(read_file(folder_ / "link"), "new");
}

// The exit status and stderr of a process that reads the last byte of a mapping whose file was
// cut.
TEST_F(Files, AMappingCutShortEndsWithTheFilesName) {
  ASSERT_TRUE(write_file(folder_ / "weights", std::string(1 << 16, 'x')));
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::dup2(pipe[1], STDERR_FILENO);
    report_truncated_mappings();
    const auto other = MappedFile::open(folder_ / "weights");
    const auto mapped = MappedFile::open(folder_ / "weights");
    if (::truncate((folder_ / "weights").c_str(), 10) != 0) ::_exit(90);
    ::_exit(static_cast<volatile const char*>(
                static_cast<const void*>(mapped->bytes().data()))[(1 << 16) - 1] == 'x'
                ? 91
                : 92);
  }
  ::close(pipe[1]);
  std::string text;  // written in pieces, as a signal's handler can
  for (char piece[256];;) {
    const ssize_t bytes = ::read(pipe[0], piece, sizeof piece);
    if (bytes <= 0) break;
    text.append(piece, static_cast<size_t>(bytes));
  }
  ::close(pipe[0]);
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 3);
  EXPECT_EQ(text, "assay: " + (folder_ / "weights").string() +
                      ": expected the file to stay as long as it was when it was opened, found it "
                      "cut short\n");
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
        write_file(folder_ / "no/folder", "")}) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().kind, ErrorKind::kBadInput) << status.error().message;
    EXPECT_THAT(status.error().message, HasSubstr(": expected to write there, found: "));
  }
}

}  // namespace
}  // namespace assay
