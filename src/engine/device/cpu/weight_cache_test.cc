// Files of packed weights: what was written comes back, and nothing else counts as it.
#include "engine/device/cpu/weight_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>

#include "base/files/files.h"
#include "engine/codegen/cpu/scratch_folder.h"

namespace assay::engine {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr uint64_t kFileBytes = 5 * HugeMemory::kPageBytes + 4321;

std::byte byte_at(uint64_t at, int seed) {
  return static_cast<std::byte>((at * 31 + at / 4096 + static_cast<uint64_t>(seed)) % 251);
}

class WeightCacheTest : public testing::Test {
 protected:
  fs::path folder() const { return scratch_.path() / "kernels"; }
  WeightCache open(uint64_t limit_bytes = WeightCache::kDefaultLimitBytes) const {
    auto cache = WeightCache::open(folder(), limit_bytes);
    EXPECT_TRUE(cache) << cache.error().message;
    return *std::move(cache);
  }
  fs::path file_of(const WeightFileKey& key) const { return folder() / (key.digest + ".weights"); }

  static WeightFileKey key_of(char digit, uint64_t bytes = kFileBytes) {
    return {.digest = std::string(KeptFiles::kDigestDigits, digit),
            .label = "my-model",
            .bytes = bytes};
  }

  // In pieces of sizes that no page has, with a gap of zeros.
  static Result<MappedFile> write(WeightCache& cache, const WeightFileKey& key, int seed = 0) {
    ASSAY_TRY(WeightFile file, cache.begin(key));
    const uint64_t gap = std::min<uint64_t>(100, key.bytes);
    ASSAY_CHECK(file.skip_to(gap));
    for (uint64_t at = gap; at < key.bytes;) {
      const uint64_t piece = std::min<uint64_t>(key.bytes - at, at % 3 == 0 ? 777'777 : 3'000'001);
      ASSAY_TRY(std::byte* const memory, file.next(piece));
      for (uint64_t i = 0; i < piece; ++i) memory[i] = byte_at(at + i, seed);
      at += piece;
    }
    return cache.keep(std::move(file), key);
  }

  static bool holds(const MappedFile& file, const WeightFileKey& key, int seed = 0) {
    if (file.bytes().size() < key.bytes) return false;
    for (uint64_t at = 0; at < key.bytes; ++at) {
      if (file.bytes()[at] != (at < 100 ? std::byte{0} : byte_at(at, seed))) return false;
    }
    return true;
  }

  size_t files() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(folder()), fs::directory_iterator()));
  }

 private:
  ScratchFolder scratch_;
};

TEST_F(WeightCacheTest, GivesBackWhatWasWritten) {
  WeightCache cache = open();
  for (const uint64_t bytes :
       {uint64_t{1}, uint64_t{100}, uint64_t{HugeMemory::kPageBytes}, kFileBytes}) {
    const WeightFileKey key = key_of('a', bytes);
    cache = open();
    EXPECT_FALSE(cache.find(key));
    const auto written = write(cache, key);
    ASSERT_TRUE(written) << written.error().message;
    EXPECT_TRUE(holds(*written, key));
    const auto found = open().find(key);
    ASSERT_TRUE(found);
    EXPECT_TRUE(holds(*found, key));
    EXPECT_EQ(files(), 1u) << "no draft stays";
    EXPECT_EQ(fs::status(file_of(key)).permissions(),
              fs::perms::owner_read | fs::perms::owner_write);
    ASSERT_TRUE(open().clear());
    EXPECT_TRUE(holds(*found, key)) << "who has mapped it keeps it";
  }
}

// A file of another key, version, size or name doesn't count, and goes.
// A process that is killed leaves what it had begun. A draft that somebody writes, or that may be
// from a moment ago, stays.
TEST_F(WeightCacheTest, ABegunFileGoesOnceNobodyWritesIt) {
  WeightCache cache = open();
  auto written = cache.begin(key_of('a'));
  ASSERT_TRUE(written) << written.error().message;
  const fs::path held = fs::directory_iterator(folder())->path();
  const fs::path left = folder() / "assay-tmp-abcdef", fresh = folder() / "assay-tmp-ghijkl";
  for (const fs::path& path : {left, fresh}) std::ofstream(path) << "begun";
  for (const fs::path& path : {held, left}) {
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::minutes(1));
  }
  open();
  EXPECT_TRUE(fs::exists(held));
  EXPECT_TRUE(fs::exists(fresh));
  EXPECT_FALSE(fs::exists(left));
}

TEST_F(WeightCacheTest, AnyOtherFileCountsAsAbsent) {
  const WeightFileKey key = key_of('a', 1000);
  WeightCache cache = open();
  ASSERT_TRUE(write(cache, key));
  const std::string whole = *read_file(file_of(key));
  std::vector<std::string> damaged = {"", "\n", whole.substr(1), whole + "\n", "x" + whole};
  for (size_t length = 0; length < whole.size(); length += length < 1000 ? 333 : 1)
    damaged.push_back(whole.substr(0, length));
  for (size_t bit = 0; bit < (whole.size() - 1000) * 8; ++bit) {
    damaged.push_back(whole);
    damaged.back()[1000 + bit / 8] ^= static_cast<char>(1 << bit % 8);
  }
  const size_t version = whole.find("assay-weights-1");
  ASSERT_NE(version, std::string::npos);
  damaged.push_back(whole);
  damaged.back().replace(version, 15, "assay-weights-2");
  for (const std::string& content : damaged) {
    std::ofstream(file_of(key), std::ios::binary) << content;
    ASSERT_EQ(content == whole, cache.find(key).has_value()) << content.size();
    ASSERT_EQ(content == whole, fs::exists(file_of(key)));
  }
  ASSERT_TRUE(write(cache, key));
  WeightFileKey other = key;
  other.bytes = 999;
  EXPECT_FALSE(cache.find(other));
  ASSERT_TRUE(write(cache, key));
  fs::rename(file_of(key), file_of(key_of('b', 1000)));
  EXPECT_FALSE(cache.find(key_of('b', 1000))) << "another's file by this name";
  EXPECT_EQ(files(), 0u);
}

TEST_F(WeightCacheTest, LinksFoldersAndFilesOfOthersAreNoEntries) {
  const WeightFileKey key = key_of('a', 1000);
  WeightCache cache = open();
  ASSERT_TRUE(write(cache, key));
  const fs::path elsewhere = folder().parent_path() / "elsewhere";
  fs::rename(file_of(key), elsewhere);
  fs::create_symlink(elsewhere, file_of(key));
  EXPECT_FALSE(cache.find(key));
  fs::remove(file_of(key));
  fs::create_directory(file_of(key));
  EXPECT_FALSE(cache.find(key));
  EXPECT_FALSE(write(cache, key)) << "a folder stands there";
  EXPECT_EQ(files(), 1u) << "the draft goes";
  fs::remove(file_of(key));
  fs::rename(elsewhere, file_of(key));
  fs::permissions(file_of(key), fs::perms::others_write, fs::perm_options::add);
  EXPECT_FALSE(cache.find(key));
  EXPECT_THAT(cache.take_refusal(), HasSubstr("that others can't write to (models are computed"));
  EXPECT_TRUE(fs::exists(file_of(key)));
}

TEST_F(WeightCacheTest, TheLatestUsedStayWithinTheLimit) {
  WeightCache cache = open(3 * 1100);
  for (const char digit : {'a', 'b', 'c'}) {
    ASSERT_TRUE(write(cache, key_of(digit, 1000)));
    fs::last_write_time(file_of(key_of(digit)),
                        fs::file_time_type::clock::now() - std::chrono::hours('d' - digit));
  }
  const auto used = cache.find(key_of('a', 1000));
  ASSERT_TRUE(used) << "b is the oldest now";
  ASSERT_TRUE(write(cache, key_of('d', 1000)));
  EXPECT_FALSE(cache.find(key_of('b', 1000)));
  EXPECT_EQ(cache.entries()->size(), 3u);
  EXPECT_EQ(cache.entries()->back().label, "my-model");
  const auto large = write(cache, key_of('e', 4000));
  ASSERT_FALSE(large);
  EXPECT_THAT(large.error().message, HasSubstr("expected room for 4.00 kB of packed weights, found "
                                               "a limit of 3.30 kB"));
  EXPECT_EQ(cache.entries()->size(), 3u) << "nothing goes for what can't stay";
}

TEST_F(WeightCacheTest, NoRoomIsOneError) {
  WeightCache cache = open();
  const auto larger_than_any_disk = open(uint64_t{1} << 62).begin(key_of('a', uint64_t{1} << 60));
  ASSERT_FALSE(larger_than_any_disk);
  EXPECT_THAT(larger_than_any_disk.error().message, HasSubstr("of which half may be taken"));
  EXPECT_EQ(files(), 0u);
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit little{100'000, 100'000};
    ::setrlimit(RLIMIT_FSIZE, &little);
    const auto written = write(cache, key_of('b'));
    ::_exit(!written && written.error().kind == ErrorKind::kEnvironment &&
                    written.error().message.find("expected to write packed weights there") !=
                        std::string::npos
                ? 0
                : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  fs::remove_all(folder());
  EXPECT_THAT(write(cache, key_of('c')).error().message, HasSubstr("expected to write packed"))
      << "as in a folder that takes no file";
}

TEST_F(WeightCacheTest, OfProcessesThatWriteOneKeyAllHaveItWhole) {
  const WeightFileKey key = key_of('a');
  open();
  std::vector<pid_t> children;
  for (int writer = 0; writer < 3; ++writer) {
    children.push_back(::fork());
    if (children.back() != 0) continue;
    WeightCache cache = open();
    bool good = true;
    for (int i = 0; i < 4 && good; ++i) {
      const auto written = write(cache, key);
      const auto found = cache.find(key);
      good = written && holds(*written, key) && found && holds(*found, key);
    }
    ::_exit(good ? 0 : 1);
  }
  for (const pid_t child : children) {
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(files(), 1u);
}

}  // namespace
}  // namespace assay::engine
