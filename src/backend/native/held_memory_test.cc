// Memory that is held is in memory, and a timed region that touches it takes no page.
#include "backend/native/held_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/files.h"
#include "base/mapped_file.h"
#include "base/temporary_folder.h"

namespace assay {
namespace {

constexpr size_t kBytes = size_t{8} << 20;

// Of small pages, so that each that isn't held is a fault of its own.
class Mapped {
 public:
  Mapped()
      : data_(static_cast<unsigned char*>(
            mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    madvise(data_, kBytes, MADV_NOHUGEPAGE);
  }
  Mapped(const Mapped&) = delete;
  ~Mapped() { munmap(data_, kBytes); }

  void touch() {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    for (size_t at = 0; at < kBytes; at += page) data_[at] = static_cast<unsigned char>(at + 1);
  }
  // Until it is unmapped.
  bool lock() const { return mlock(data_, kBytes) == 0; }
  size_t resident_pages() const {
    const size_t pages = kBytes / static_cast<size_t>(sysconf(_SC_PAGESIZE));
    std::vector<unsigned char> in_core(pages);
    EXPECT_EQ(mincore(data_, kBytes, in_core.data()), 0);
    size_t resident = 0;
    for (const unsigned char one : in_core) resident += one & 1;
    return resident;
  }

 private:
  unsigned char* data_;
};

int64_t warm_faults(TimedMemory& memory, Mapped& mapped) {
  memory.begin();
  mapped.touch();
  memory.end();
  memory.count(false);
  return memory.to_json()["warm_faults"]["minor"].get<int64_t>();
}

// What the kernel says is locked of this process.
int64_t locked_now() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmLck:")) return std::stoll(line.substr(6)) * 1024;
  }
  return -1;
}

// Pages of a mapping that this process meets without a fault. How many faults the others cost is
// the kernel's choice: it maps around a fault, a whole large folio at once where the file lies in
// one.
size_t mapped_pages(std::span<const std::byte> mapping) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const size_t pages = mapping.size() / page;
  std::vector<uint64_t> entries(pages);
  std::ifstream map;
  map.rdbuf()->pubsetbuf(nullptr, 0);  // the kernel gives whole entries only
  map.open("/proc/self/pagemap", std::ios::binary);
  map.seekg(static_cast<std::streamoff>(reinterpret_cast<uintptr_t>(mapping.data()) / page *
                                        sizeof(uint64_t)));
  map.read(reinterpret_cast<char*>(entries.data()),
           static_cast<std::streamsize>(pages * sizeof(uint64_t)));
  EXPECT_TRUE(map) << "/proc/self/pagemap";
  return static_cast<size_t>(
      std::ranges::count_if(entries, [](uint64_t entry) { return (entry >> 63) != 0; }));
}

// The address sanitizer's mlock() says that it locked, and does nothing.
bool only_says_that_it_locks() {
  const Mapped mapped;
  const int64_t before = locked_now();
  return mapped.lock() && locked_now() == before;
}
constexpr const char* kNoLocks = "mlock() does nothing here: a sanitizer's";

TEST(HeldMemory, IsInMemoryBeforeItIsTouched) {
  if (only_says_that_it_locks()) GTEST_SKIP() << kNoLocks;
  const Mapped mapped;
  EXPECT_EQ(mapped.resident_pages(), 0u);
  EXPECT_GE(hold_memory(), static_cast<int64_t>(kBytes));
  EXPECT_EQ(mapped.resident_pages(), kBytes / static_cast<size_t>(sysconf(_SC_PAGESIZE)));
}

TEST(HeldMemory, ATimedRegionThatTouchesItTakesNoPage) {
  if (only_says_that_it_locks()) GTEST_SKIP() << kNoLocks;
  const auto pages = static_cast<int64_t>(kBytes / static_cast<size_t>(sysconf(_SC_PAGESIZE)));
  Mapped mapped;
  TimedMemory untouched;
  EXPECT_GE(warm_faults(untouched, mapped), pages) << "as it is without holding";
  Mapped held;
  TimedMemory memory;
  memory.hold(1, 64);
  EXPECT_LT(warm_faults(memory, held), pages / 10);
  EXPECT_EQ(memory.to_json()["warm_faults"]["rows"], 1);
  EXPECT_EQ(memory.to_json()["cold_faults"]["rows"], 0);
}

TEST(HeldMemory, IsHeldOncePerShape) {
  if (only_says_that_it_locks()) GTEST_SKIP() << kNoLocks;
  TimedMemory memory;
  EXPECT_FALSE(memory.to_json().contains("held_bytes"));
  memory.hold(1, 64);
  const Mapped later;
  memory.hold(1, 64);
  EXPECT_EQ(later.resident_pages(), 0u);
  memory.hold(2, 64);
  EXPECT_GT(later.resident_pages(), 0u);
}

// A file of 1 MiB, mapped as weights are, with the limit on locked memory as given until the end.
class HeldFile : public testing::TestWithParam<rlim_t> {
 protected:
  void SetUp() override {
    getrlimit(RLIMIT_MEMLOCK, &before_);
    const rlimit lower{std::min(GetParam(), before_.rlim_max), before_.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_MEMLOCK, &lower), 0);
    ASSERT_TRUE(write_file(folder_.path() / "weights", std::string(kFileBytes, 'w')));
    auto opened = MappedFile::open(folder_.path() / "weights");
    ASSERT_TRUE(opened) << opened.error().message;
    file_ = *std::move(opened);
  }
  void TearDown() override { setrlimit(RLIMIT_MEMLOCK, &before_); }

  int64_t faults_of_reading() {
    TimedMemory memory;
    memory.begin();
    for (size_t at = 0; at < kFileBytes; at += 4096) read_ += static_cast<int>(file_.bytes()[at]);
    memory.end();
    memory.count(false);
    return memory.to_json()["warm_faults"]["minor"].get<int64_t>();
  }

  static constexpr size_t kFileBytes = size_t{1} << 20;
  TemporaryFolder folder_ = TemporaryFolder::make("held").value();
  rlimit before_{};
  MappedFile file_;
  int read_ = 0;
};

TEST_P(HeldFile, IsReadWithoutAFaultAndWhatIsLockedIsRecorded) {
  if (only_says_that_it_locks()) GTEST_SKIP() << kNoLocks;
  const int64_t locked_before = locked_now();
  const std::span<const std::byte> files[] = {file_.bytes()};
  const HeldFiles held = hold_files(files);
  EXPECT_EQ(held.bytes, static_cast<int64_t>(kFileBytes));
  EXPECT_EQ(held.locked_bytes, locked_now() - locked_before) << "as the kernel counts it";
  EXPECT_EQ(mapped_pages(file_.bytes()), kFileBytes / static_cast<size_t>(sysconf(_SC_PAGESIZE)));
  EXPECT_LT(faults_of_reading(), 3);
}

TEST_P(HeldFile, WouldCostFaultsOtherwise) {
  EXPECT_EQ(mapped_pages(file_.bytes()), 0u);
  EXPECT_GE(faults_of_reading(), 1);
}

INSTANTIATE_TEST_SUITE_P(Limits, HeldFile, testing::Values(rlim_t{0}, RLIM_INFINITY),
                         [](const auto& of) { return of.param == 0 ? "none" : "as_it_was"; });

}  // namespace
}  // namespace assay
