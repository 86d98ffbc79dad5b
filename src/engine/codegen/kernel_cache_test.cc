#include "engine/codegen/kernel_cache.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <thread>

#include "base/clock.h"
#include "base/files/files.h"
#include "engine/codegen/cpu/scratch_folder.h"

namespace assay::engine {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

class KernelCacheTest : public testing::Test {
 protected:
  fs::path folder() const { return scratch_.path() / "kernels"; }
  KernelCache open(uint64_t limit_bytes = KernelCache::kDefaultLimitBytes) const {
    auto cache = KernelCache::open(folder(), limit_bytes);
    EXPECT_TRUE(cache) << cache.error().message;
    return *std::move(cache);
  }

 private:
  ScratchFolder scratch_;
};

KernelKey key_of(const std::string& source) {
  return {source, "cpu", "c++ 12", "-O3"};
}

// Different for every source, and long enough that a write takes several system calls' time.
std::string built_of(const std::string& source, size_t bytes = 1000) {
  std::string built(bytes, '\0');
  std::mt19937 random(static_cast<unsigned>(std::hash<std::string>()(source)));
  for (char& byte : built) byte = static_cast<char>(random());
  return built;
}

fs::path add(KernelCache& cache, const std::string& source, size_t bytes = 1000) {
  const auto path = cache.add(key_of(source), built_of(source, bytes));
  EXPECT_TRUE(path) << path.error().message;
  return path.value_or("");
}

// Runs in a child process, which ends with status 0 if the body returns true.
pid_t in_child(const std::function<bool()>& body) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(body() ? 0 : 1);
  return pid;
}
int status_of(pid_t pid) {
  int status = -1;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

void set_time(const fs::path& path, int64_t unix_s) {
  const timespec times[2] = {{unix_s, 0}, {unix_s, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
}

int files_in(const fs::path& folder) {
  return static_cast<int>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST(KernelKeyTest, EveryPartCounts) {
  const KernelKey key = {"source", "cpu", "c++ 12", "-O3"};
  EXPECT_EQ(key.digest().size(), 64u);
  EXPECT_EQ(key.digest(), KernelKey(key).digest());
  EXPECT_NE(key.digest(), (KernelKey{"sourc", "ecpu", "c++ 12", "-O3"}.digest()));
  EXPECT_NE(key.digest(), (KernelKey{"source", "sm_80", "c++ 12", "-O3"}.digest()));
  EXPECT_NE(key.digest(), (KernelKey{"source", "cpu", "c++ 13", "-O3"}.digest()));
  EXPECT_NE(key.digest(), (KernelKey{"source", "cpu", "c++ 12", "-O2"}.digest()));
}

TEST_F(KernelCacheTest, OfTwoWritersTheFirstOrTheLastWins) {
  KernelCache mine = open(), others = open();
  EXPECT_EQ(mine.add_first(key_of("a"), "mine").value_or(""), "mine");
  EXPECT_EQ(others.add_first(key_of("a"), "the other's").value_or(""), "mine");
  EXPECT_EQ(mine.read(key_of("a")), "mine");
  ASSERT_TRUE(others.add(key_of("a"), "the other's"));
  EXPECT_EQ(mine.read(key_of("a")), "the other's");
  EXPECT_EQ(mine.add_first(key_of("a"), "mine").value_or(""), "the other's");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder()), fs::directory_iterator()), 1)
      << "nothing temporary stays";
}

TEST_F(KernelCacheTest, GivesBackWhatWasAdded) {
  KernelCache cache = open();
  EXPECT_FALSE(cache.find(key_of("a")));
  const fs::path path = add(cache, "a");
  KernelCache other = open();
  EXPECT_TRUE(fs::equivalent(other.find(key_of("a")).value_or(""), path));
  EXPECT_EQ(other.read(key_of("a")), built_of("a"));
  EXPECT_THAT(*read_file(path), StartsWith(built_of("a"))) << "the loader reads from the start";
  EXPECT_FALSE(other.find(key_of("b")));
  other.remove(key_of("a"));
  EXPECT_FALSE(cache.find(key_of("a")));
}

TEST_F(KernelCacheTest, EmptyResultsAreEntriesToo) {
  KernelCache cache = open();
  ASSERT_TRUE(cache.add(key_of("a"), ""));
  EXPECT_EQ(cache.read(key_of("a")), "");
}

TEST_F(KernelCacheTest, FolderIsPrivate) {
  open();
  EXPECT_EQ(fs::status(folder()).permissions(), fs::perms::owner_all);
  for (const mode_t mode : {0777, 0720, 0702}) {
    ASSERT_EQ(::chmod(folder().c_str(), mode), 0);
    const auto cache = KernelCache::open(folder());
    ASSERT_FALSE(cache) << mode;
    EXPECT_EQ(cache.error().kind, ErrorKind::kBadInput);
    EXPECT_THAT(cache.error().message, HasSubstr("others can't write"));
  }
  ASSERT_EQ(::chmod(folder().c_str(), 0755), 0);
  EXPECT_TRUE(KernelCache::open(folder())) << "others may read";
}

TEST_F(KernelCacheTest, ForeignFolderIsRefused) {
  open();
  if (::chown(folder().c_str(), 12345, 0) != 0) GTEST_SKIP() << "only root can give files away";
  const auto cache = KernelCache::open(folder());
  ASSERT_FALSE(cache);
  EXPECT_THAT(cache.error().message, HasSubstr("found user 12345's"));
}

// A link to a folder of this user's, put there by another one.
TEST_F(KernelCacheTest, ForeignLinkIsRefused) {
  open();
  const fs::path link = folder().parent_path() / "link";
  fs::create_symlink(folder(), link);
  EXPECT_TRUE(KernelCache::open(link)) << "this user's own";
  if (::lchown(link.c_str(), 12345, 0) != 0) GTEST_SKIP() << "only root can give files away";
  const auto cache = KernelCache::open(link);
  ASSERT_FALSE(cache);
  EXPECT_THAT(cache.error().message, HasSubstr("found user 12345's"));
}

// Whoever may write to a file that is loaded runs code as this user.
TEST_F(KernelCacheTest, EntriesThatOthersMayWriteAreRefused) {
  KernelCache cache = open();
  const fs::path path = add(cache, "a");
  for (const mode_t mode : {0666, 0620, 0602}) {
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    EXPECT_FALSE(cache.find(key_of("a")));
    EXPECT_THAT(cache.take_refusal(),
                HasSubstr(fmt::format("{} is not used: expected a file that others can't write to "
                                      "(code is loaded from it), found mode {:o}",
                                      path.string(), mode)));
    EXPECT_FALSE(cache.read(key_of("a")));
    EXPECT_NE(cache.take_refusal(), "");
    EXPECT_EQ(cache.take_refusal(), "") << "it is told once";
  }
  EXPECT_TRUE(fs::exists(path)) << "it is left to whom it belongs";
  EXPECT_EQ(cache.add_first(key_of("a"), "mine").value_or(""), "mine");
  EXPECT_EQ(cache.read(key_of("a")), "mine") << "the next one finds it";
  ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
  EXPECT_TRUE(cache.find(key_of("a"))) << "others may read";
}

TEST_F(KernelCacheTest, EntriesOfAnotherUserAreRefused) {
  KernelCache cache = open();
  const fs::path path = add(cache, "a");
  if (::chown(path.c_str(), 12345, 0) != 0) GTEST_SKIP() << "only root can give files away";
  EXPECT_FALSE(cache.find(key_of("a")));
  EXPECT_THAT(cache.take_refusal(), HasSubstr("found user 12345's"));
  EXPECT_EQ(add(cache, "a"), path) << "compiled anew, it takes the place";
  EXPECT_TRUE(cache.find(key_of("a")));
}

// Another folder at the path isn't looked at: the one that was checked and opened is used.
TEST_F(KernelCacheTest, AFolderThatIsExchangedMeanwhileIsNotTheCache) {
  KernelCache cache = open();
  add(cache, "a");
  const fs::path aside = folder().parent_path() / "aside";
  fs::rename(folder(), aside);
  fs::create_directory(folder());
  fs::permissions(folder(), fs::perms::all);
  const auto found = cache.find(key_of("a"));
  ASSERT_TRUE(found);
  EXPECT_TRUE(fs::equivalent(found->parent_path(), aside));
  add(cache, "b");
  EXPECT_EQ(files_in(folder()), 0);
}

TEST_F(KernelCacheTest, FileInPlaceOfTheFolderIsRefused) {
  ASSERT_TRUE(write_file(folder(), "text"));
  const auto cache = KernelCache::open(folder());
  ASSERT_FALSE(cache);
  EXPECT_THAT(cache.error().message, HasSubstr("expected a folder"));
  EXPECT_FALSE(KernelCache::open(folder() / "below"));
  EXPECT_FALSE(KernelCache::open(""));
}

// Every way in which a file may be damaged is found, and the file goes.
TEST_F(KernelCacheTest, DamagedEntriesCountAsAbsent) {
  const std::string whole = [&] {
    KernelCache cache = open();
    return *read_file(add(cache, "a"));
  }();
  std::vector<std::string> damaged = {"", "\n", whole.substr(1), whole + "\n", whole + whole};
  for (const size_t length : {size_t{1}, size_t{999}, size_t{1000}, size_t{1001}, size_t{1100}}) {
    damaged.push_back(whole.substr(0, length));
  }
  for (size_t at = 0; at < whole.size(); at += at < 1000 ? 197 : 1) {
    damaged.push_back(whole);
    damaged.back()[at] ^= 1;
  }
  damaged.push_back(std::string(whole.size(), '\0'));
  KernelCache cache = open();
  for (const std::string& content : damaged) {
    const fs::path path = add(cache, "a");
    std::ofstream(path, std::ios::binary) << content;
    EXPECT_EQ(content == whole, cache.find(key_of("a")).has_value());
    EXPECT_FALSE(fs::exists(path));
  }
}

TEST_F(KernelCacheTest, EntryUnderAnothersNameIsRefused) {
  KernelCache cache = open();
  const fs::path a = add(cache, "a");
  const fs::path b = add(cache, "b");
  fs::rename(a, b);
  EXPECT_FALSE(cache.find(key_of("b")));
}

TEST_F(KernelCacheTest, LinksAndFoldersAreNoEntries) {
  KernelCache cache = open();
  const fs::path path = add(cache, "a");
  const fs::path elsewhere = folder().parent_path() / "elsewhere";
  fs::rename(path, elsewhere);
  fs::create_symlink(elsewhere, path);
  EXPECT_FALSE(cache.find(key_of("a")));
  fs::remove(path);
  fs::create_directory(path);
  EXPECT_FALSE(cache.find(key_of("a")));
  ASSERT_EQ(::mkfifo((folder() / "fifo").c_str(), 0600), 0);
  EXPECT_TRUE(cache.entries());
}

TEST_F(KernelCacheTest, OldestUsedGoFirstAndTheNewestStays) {
  KernelCache cache = open(3 * 1300);
  int64_t age_s = 100;
  for (const char* source : {"a", "b", "c"})
    set_time(add(cache, source), ::time(nullptr) - age_s--);
  ASSERT_TRUE(cache.find(key_of("a"))) << "used again: b is the oldest now";
  add(cache, "d");
  EXPECT_TRUE(cache.find(key_of("a")));
  EXPECT_FALSE(cache.find(key_of("b")));
  EXPECT_TRUE(cache.find(key_of("c")));
  EXPECT_TRUE(cache.find(key_of("d")));
  add(cache, "large", 100'000);
  EXPECT_TRUE(cache.find(key_of("large"))) << "over the limit alone, and yet it is kept";
  EXPECT_EQ(cache.entries()->size(), 1u);
}

TEST_F(KernelCacheTest, LimitHoldsOverManyWritersOneAfterAnother) {
  for (int i = 0; i < 50; ++i) {
    KernelCache cache = open(10'000);
    add(cache, fmt::format("first {}", i));
    add(cache, fmt::format("second {}", i));
    uint64_t bytes = 0;
    const auto entries = *cache.entries();
    for (const auto& entry : entries) bytes += entry.bytes;
    ASSERT_LE(bytes, 10'000u);
    ASSERT_GE(entries.size(), std::min(2u * static_cast<unsigned>(i + 1), 8u));
  }
}

TEST_F(KernelCacheTest, ListsByLastUseAndClears) {
  KernelCache cache = open();
  set_time(add(cache, "a"), 1000);
  ASSERT_TRUE(cache.add({"gpu", "sm_90a", "nvrtc", ""}, "cubin"));
  ASSERT_TRUE(write_file(folder() / "assay-tmp-aB3xY9", "12345"));
  for (const char* name :
       {"notes", "tmp-mine", "assay-tmp-", "assay-tmp-notes", "assay-tmp-a.b-c9"}) {
    ASSERT_TRUE(write_file(folder() / name, "not ours"));
  }
  const auto entries = *cache.entries();
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].target, "sm_90a");
  EXPECT_EQ(entries[1].target, "cpu");
  EXPECT_EQ(entries[1].digest, key_of("a").digest());
  EXPECT_EQ(entries[1].used_at_s, 1000);
  EXPECT_EQ(*cache.clear(), entries[0].bytes + entries[1].bytes + 5);
  EXPECT_TRUE(cache.entries()->empty());
  EXPECT_EQ(files_in(folder()), 5) << "what isn't ours stays";
}

// A folder or a link of such a name is nobody's kernel: it stays, and stops nothing.
TEST_F(KernelCacheTest, ClearsPastFoldersAndLinksNamedLikeEntries) {
  KernelCache cache = open();
  for (const char* source : {"a", "b", "c"}) add(cache, source);
  const std::string digits(64, '0');
  const fs::path mine = folder() / (digits + ".kernel");
  fs::create_directory(mine);
  ASSERT_TRUE(write_file(mine / "mine", "x"));
  const fs::path link = folder() / ("f" + digits.substr(1) + ".kernel");
  fs::create_symlink(mine / "mine", link);
  EXPECT_EQ(cache.entries()->size(), 3u);
  ASSERT_TRUE(cache.clear());
  EXPECT_TRUE(fs::exists(mine / "mine"));
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(files_in(folder()), 2);
}

TEST_F(KernelCacheTest, OldLeftoversGoAndYoungOnesStay) {
  open();
  const fs::path old = folder() / "assay-tmp-old000";
  const fs::path young = folder() / "assay-tmp-young0";
  ASSERT_TRUE(write_file(old, "x"));
  ASSERT_TRUE(write_file(young, "x"));
  set_time(old, ::time(nullptr) - KernelCache::kLeftoverAgeS - 10);
  KernelCache cache = open();
  add(cache, "a");
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(young)) << "its writer may be alive";
}

TEST_F(KernelCacheTest, ManyWritersOfOneKeyAndOfMany) {
  open();
  const auto write = [&](int writer) {
    KernelCache cache = open();
    bool good = true;
    for (int i = 0; i < 40; ++i) {
      for (const std::string& source : {std::string("shared"), fmt::format("own {}", writer)}) {
        good = good && cache.add(key_of(source), built_of(source, 20'000)).has_value();
        const auto read = cache.read(key_of(source));
        good = good && (!read || *read == built_of(source, 20'000));
        good = good && (read || source == "shared");  // whole, or between two renames: never torn
      }
    }
    return good;
  };
  std::vector<pid_t> children;
  for (int i = 0; i < 2; ++i) children.push_back(in_child([&, i] { return write(i); }));
  std::vector<char> good(2);
  {
    std::jthread first([&] { good[0] = write(10); });
    std::jthread second([&] { good[1] = write(11); });
  }
  EXPECT_THAT(good, ElementsAre(1, 1));
  for (const pid_t child : children) EXPECT_EQ(status_of(child), 0);
  KernelCache cache = open();
  EXPECT_EQ(cache.entries()->size(), 5u);
  EXPECT_EQ(cache.read(key_of("shared")), built_of("shared", 20'000));
  EXPECT_EQ(files_in(folder()), 5) << "no temporary file is left";
}

TEST_F(KernelCacheTest, ReadersNeverSeeHalfAnEntryWhileOthersEvict) {
  open();
  const pid_t writer = in_child([&] {
    KernelCache cache = open(60'000);
    for (int i = 0; i < 300; ++i) {
      const std::string source = fmt::format("{}", i % 7);
      if (!cache.add(key_of(source), built_of(source, 20'000))) return false;
    }
    return true;
  });
  KernelCache cache = open();
  int status = 0;
  while (::waitpid(writer, &status, WNOHANG) == 0) {
    for (int i = 0; i < 7; ++i) {
      const std::string source = fmt::format("{}", i);
      const auto read = cache.read(key_of(source));
      ASSERT_EQ(read.value_or(built_of(source, 20'000)), built_of(source, 20'000));
    }
  }
  EXPECT_EQ(status, 0);
}

// Kills `writer`, which writes a byte to `pipe` after each add(), at a random moment of one.
void kill_in_the_middle(pid_t writer, int pipe, int64_t add_ns, std::mt19937& random) {
  char done = 0;
  for (unsigned adds = random() % 4; adds > 0; --adds) ASSERT_EQ(::read(pipe, &done, 1), 1);
  const int64_t until_ns =
      monotonic_now_ns() + static_cast<int64_t>(random() % static_cast<uint64_t>(add_ns));
  while (monotonic_now_ns() < until_ns) {
  }
  ::kill(writer, SIGKILL);
  EXPECT_EQ(status_of(writer), SIGKILL);
}

TEST_F(KernelCacheTest, KilledWriterLeavesWholeEntriesOrNone) {
  constexpr size_t kBytes = size_t{2} << 20;
  std::map<std::string, std::string> built;
  for (const char* source : {"0", "1", "2"}) built[source] = built_of(source, kBytes);
  KernelCache cache = open();
  const int64_t start_ns = monotonic_now_ns();
  add(cache, "0", kBytes);
  const int64_t add_ns = 2 * (monotonic_now_ns() - start_ns);
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    int pipe[2];
    ASSERT_EQ(::pipe(pipe), 0);
    const pid_t writer = in_child([&] {
      while (true) {
        for (const auto& [source, bytes] : built) {
          if (!cache.add(key_of(source), bytes) || ::write(pipe[1], "x", 1) != 1) return false;
        }
      }
    });
    kill_in_the_middle(writer, pipe[0], add_ns, random);
    ::close(pipe[0]);
    ::close(pipe[1]);
    const size_t before = cache.entries()->size();
    size_t whole = 0;
    for (const auto& [source, bytes] : built) {
      const auto read = cache.read(key_of(source));
      ASSERT_EQ(read.value_or(bytes), bytes);
      whole += read ? 1 : 0;
    }
    ASSERT_EQ(whole, before) << "an entry was torn";
    ASSERT_TRUE(cache.clear());
    ASSERT_EQ(files_in(folder()), 0);
  }
}

// The kill comes at a chosen byte: the signal of a file that grows past its limit, within write().
TEST_F(KernelCacheTest, WriterKilledWithinItsWriteLeavesWholeEntries) {
  constexpr size_t kBytes = 100'000;
  for (const rlim_t at :
       std::initializer_list<rlim_t>{1, 4'096, 50'000, 99'999, 100'000, 100'080}) {
    KernelCache cache = open();
    add(cache, "whole", kBytes);
    const int status = status_of(in_child([&] {
      ::signal(SIGXFSZ, SIG_DFL);
      const rlimit none{0, 0}, limit{at, at};
      ::setrlimit(RLIMIT_CORE, &none);
      ::setrlimit(RLIMIT_FSIZE, &limit);
      return cache.add(key_of("torn"), built_of("torn", kBytes)).has_value();
    }));
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ) << at;
    EXPECT_EQ(files_in(folder()), 2) << "the whole entry, and what the dead writer left";
    EXPECT_FALSE(cache.read(key_of("torn"))) << at;
    EXPECT_EQ(cache.read(key_of("whole")), built_of("whole", kBytes)) << at;
    EXPECT_EQ(cache.entries()->size(), 1u) << at;
    ASSERT_TRUE(cache.clear());
    EXPECT_EQ(files_in(folder()), 0);
  }
}

TEST_F(KernelCacheTest, FullDiskIsAnErrorAndLeavesNothing) {
  open();
  EXPECT_EQ(status_of(in_child([&] {
              KernelCache cache = open();
              ::signal(SIGXFSZ, SIG_IGN);
              const rlimit limit{500, 500};  // as a full disk: the write is cut short, then fails
              ::setrlimit(RLIMIT_FSIZE, &limit);
              const auto added = cache.add(key_of("a"), built_of("a"));
              return !added && added.error().kind == ErrorKind::kEnvironment &&
                     added.error().message.find("File too large") != std::string::npos;
            })),
            0);
  EXPECT_EQ(files_in(folder()), 0);
}

TEST_F(KernelCacheTest, VanishedFolderIsAnError) {
  KernelCache cache = open();
  fs::remove_all(folder());
  EXPECT_FALSE(cache.find(key_of("a")));
  const auto added = cache.add(key_of("a"), "x");
  ASSERT_FALSE(added);
  EXPECT_THAT(added.error().message, HasSubstr("expected to write a kernel there"));
  EXPECT_TRUE(cache.entries()->empty());
  EXPECT_EQ(cache.clear(), 0u);
}

TEST(KernelCacheFolder, FollowsTheEnvironment) {
  EXPECT_EQ(status_of(in_child([] {
              ::setenv("HOME", "/h", 1);
              ::setenv("XDG_CACHE_HOME", "relative", 1);
              ::unsetenv("ASSAY_KERNEL_CACHE");
              if (KernelCache::default_folder() != "/h/.cache/assay/kernels") return false;
              ::setenv("XDG_CACHE_HOME", "/x", 1);
              if (KernelCache::default_folder() != "/x/assay/kernels") return false;
              ::setenv("ASSAY_KERNEL_CACHE", "/k", 1);
              return KernelCache::default_folder() == "/k";
            })),
            0);
}

}  // namespace
}  // namespace assay::engine
