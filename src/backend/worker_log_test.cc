// Logs of workers that print a little, much, and far too much.
#include "backend/worker_log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

namespace assay {
namespace {

constexpr uint64_t kMost = WorkerLog::kMostBytes;

class WorkerLogTest : public testing::Test {
 protected:
  // Writes as the worker does.
  void print(const std::string& text) {
    const Descriptor out(::open(log_.path().c_str(), O_WRONLY | O_APPEND));
    ASSERT_TRUE(out.ok());
    ASSERT_EQ(::write(out.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  uint64_t moved(std::string& text, uint64_t most_bytes = kMost) {
    const auto dropped = log_.move_to(
        [&](std::string_view bytes) {
          text += bytes;
          return Status();
        },
        most_bytes);
    EXPECT_TRUE(dropped);
    return dropped.value_or(0);
  }
  uint64_t disk_bytes() const {
    struct stat status {};
    EXPECT_EQ(::fstat(log_.descriptor(), &status), 0);
    return static_cast<uint64_t>(status.st_blocks) * 512;
  }

  WorkerLog log_ = WorkerLog::create().value();
};

TEST_F(WorkerLogTest, IsHandedOverPartByPart) {
  std::string text;
  print("one\n");
  EXPECT_TRUE(log_.has_more());
  EXPECT_EQ(moved(text), 0u);
  EXPECT_FALSE(log_.has_more());
  print("two\n");
  log_.bound();
  EXPECT_EQ(moved(text), 0u);
  EXPECT_EQ(text, "one\ntwo\n");
}

TEST_F(WorkerLogTest, AsMuchAsThereIsRoomForIsKeptWhole) {
  const std::string much(kMost, 'm');
  std::string text;
  print(much);
  EXPECT_EQ(moved(text), 0u);
  EXPECT_EQ(text, much);
}

TEST_F(WorkerLogTest, OfMoreTheBeginningAndTheEndAreKept) {
  std::string text;
  print("moved before\n");
  moved(text);
  text.clear();
  print("it begins\n" + std::string(kMost, 'x') + "\nValueError: the end\n");
  const uint64_t dropped = moved(text);
  EXPECT_EQ(dropped, std::string("it begins\n\nValueError: the end\n").size());
  const std::string note = "\n[assay: 31 bytes of this output were dropped here]\n";
  EXPECT_EQ(text.size(), kMost + note.size());
  EXPECT_EQ(text.substr(kMost / 2, note.size()), note);
  EXPECT_TRUE(text.starts_with("it begins\nxxx"));
  EXPECT_TRUE(text.ends_with("xxx\nValueError: the end\n"));
}

TEST_F(WorkerLogTest, ASmallerRoomKeepsLess) {
  std::string text;
  print("begin" + std::string(100, 'x') + "end");
  EXPECT_EQ(moved(text, 10), 98u);
  EXPECT_EQ(text, "begin\n[assay: 98 bytes of this output were dropped here]\nxxend");
}

TEST_F(WorkerLogTest, AFloodTakesNoMoreDiskThanItsBound) {
  constexpr int kParts = 40;
  for (const char letter : {'a', 'b'}) {
    print(std::string("flood ") + letter);
    for (int part = 0; part < kParts; ++part) {
      print(std::string(kMost, letter));
      log_.bound();
      ASSERT_LE(disk_bytes(), 5 * kMost) << part;
    }
    print("KeyError: last words\n");
    std::string text;
    const uint64_t dropped = moved(text);
    EXPECT_EQ(dropped,
              kParts * kMost + std::string("flood aKeyError: last words\n").size() - kMost);
    EXPECT_TRUE(text.starts_with(std::string("flood ") + letter + letter));
    EXPECT_TRUE(text.ends_with(std::string(1, letter) + "KeyError: last words\n"));
    EXPECT_LT(text.size(), kMost + 100);
    EXPECT_EQ(text.find('\0'), std::string::npos) << "a hole is not text";
    EXPECT_LE(disk_bytes(), kMost / 16) << "what was moved is given back";
  }
}

}  // namespace
}  // namespace assay
