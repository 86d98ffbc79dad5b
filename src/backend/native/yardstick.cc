// One piece that waits for memory and branches, one that keeps the arithmetic units busy: a
// neighbour on the same core slows the two by different amounts, and kernels are mixtures of both.
// Neither may depend on the program's traces in caches, or a change of the program would pass for
// one of the machine: so nothing reads memory that the region may have pushed out of the caches.
#include "backend/native/yardstick.h"

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"

namespace assay {
namespace {

constexpr size_t kEntries = 4096;    // 16 KiB: within the first-level cache
constexpr size_t kLineEntries = 16;  // of 64 bytes
constexpr int kLookups = 4000;
constexpr size_t kSums = 96;  // independent of one another
constexpr int kMultiplies = 1500;

constexpr auto kTable = [] {
  std::array<uint32_t, kEntries> table{};
  for (uint32_t i = 0; i < kEntries; ++i) table[i] = (i * 2654435761u) >> 7;
  return table;
}();

// Hides the value from the compiler, so that it can't compute with it.
template <typename T>
T unknown(T value) {
  asm volatile("" : "+r"(value) : : "memory");
  return value;
}

// Each address and each branch hangs on the value loaded before.
__attribute__((noinline, aligned(64))) uint32_t look_up(const uint32_t* table, uint32_t x) {
  for (int i = 0; i < kLookups; ++i) {
    x = x * 1664525u + table[(x >> 9) % kEntries];
    if ((x & 0x10000) != 0) {
      x ^= table[(x >> 3) % kEntries];
    } else {
      x += 77;
    }
  }
  return x;
}

__attribute__((noinline, aligned(64))) void multiply(float* sums) {
  for (int i = 0; i < kMultiplies; ++i) {
    for (size_t j = 0; j < kSums; ++j) sums[j] = sums[j] * 0.999F + 0.001F;
  }
}

// Brings the table into the nearest cache, where the region has put its own data.
uint32_t fetch(const uint32_t* table) {
  uint32_t sum = 0;
  for (size_t i = 0; i < kEntries; i += kLineEntries) sum += table[i];
  return sum;
}

}  // namespace

void run_yardstick(Measured& measured) {
  alignas(64) std::array<float, kSums> sums{};
  for (size_t j = 0; j < kSums; ++j) sums[j] = static_cast<float>(j);
  unknown(fetch(unknown(kTable.data())));
  const int64_t begin = monotonic_now_ns();
  unknown(look_up(unknown(kTable.data()), unknown(12345u)));
  const int64_t between = monotonic_now_ns();
  multiply(unknown(sums.data()));
  unknown(sums.data());
  const int64_t end = monotonic_now_ns();
  measured.yardstick_lookups_us = static_cast<double>(between - begin) / 1e3;
  measured.yardstick_multiplies_us = static_cast<double>(end - between) / 1e3;
}

}  // namespace assay
