// Regions that touch fresh pages, and regions that touch known ones.
#include "backend/native/region_faults.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace assay {
namespace {

constexpr size_t kBytes = size_t{8} << 20;

// Memory of small pages, so that each page is a fault of its own.
class FreshPages {
 public:
  FreshPages()
      : data_(static_cast<unsigned char*>(
            mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    madvise(data_, kBytes, MADV_NOHUGEPAGE);
  }
  FreshPages(const FreshPages&) = delete;
  ~FreshPages() { munmap(data_, kBytes); }

  static int64_t count() { return static_cast<int64_t>(kBytes) / sysconf(_SC_PAGESIZE); }
  void touch() {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    for (size_t at = 0; at < kBytes; at += page) data_[at] = static_cast<unsigned char>(at + 1);
  }

 private:
  unsigned char* data_;
};

TEST(RegionFaults, AreTheFirstTouchesOfPages) {
  FreshPages pages;
  RegionFaults faults;
  for (const bool cold : {true, false}) {
    faults.begin();
    pages.touch();
    faults.end();
    faults.count(cold);
  }
  const Json json = faults.to_json();
  EXPECT_EQ(json["cold_faults"]["rows"], 1);
  EXPECT_GE(json["cold_faults"]["minor"], FreshPages::count());
  EXPECT_EQ(json["warm_faults"]["rows"], 1);
  EXPECT_LT(json["warm_faults"]["minor"], FreshPages::count() / 10);
}

}  // namespace
}  // namespace assay
