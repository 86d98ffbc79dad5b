// Memory that is held is in memory, and a timed region that touches it takes no page.
#include "backend/native/held_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <thread>
#include <vector>

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

TEST(HeldMemory, IsInMemoryBeforeItIsTouched) {
  const Mapped mapped;
  EXPECT_EQ(mapped.resident_pages(), 0u);
  EXPECT_GE(hold_memory(), static_cast<int64_t>(kBytes));
  EXPECT_EQ(mapped.resident_pages(), kBytes / static_cast<size_t>(sysconf(_SC_PAGESIZE)));
}

TEST(HeldMemory, ATimedRegionThatTouchesItTakesNoPage) {
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
  TimedMemory memory;
  EXPECT_FALSE(memory.to_json().contains("held_bytes"));
  memory.hold(1, 64);
  const Mapped later;
  memory.hold(1, 64);
  EXPECT_EQ(later.resident_pages(), 0u);
  memory.hold(2, 64);
  EXPECT_GT(later.resident_pages(), 0u);
}

}  // namespace
}  // namespace assay
