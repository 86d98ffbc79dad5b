// By the process' own map, and its own count of faults.
#include "backend/native/held_memory.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string>
#include <vector>

#include "engine/device/cpu/bandwidth.h"

namespace assay {
namespace {

struct Range {
  uintptr_t begin = 0;
  uintptr_t end = 0;
  size_t bytes() const { return end - begin; }
};

constexpr size_t kLeast = size_t{1} << 20;

// "begin-end perms offset device inode   name": writable memory of no file and without a name.
bool is_own_memory(std::string_view line) {
  const size_t perms = line.find(' ');
  if (perms == std::string_view::npos || line.substr(perms + 1, 4) != "rw-p") return false;
  const bool heap = line.ends_with("[heap]");
  return heap || line.substr(0, line.find_last_not_of(' ') + 1).ends_with(" 0");
}

std::optional<Range> range_of(std::string_view line) {
  Range range;
  const char* const end = line.data() + line.size();
  const auto begin = std::from_chars(line.data(), end, range.begin, 16);
  if (begin.ec != std::errc() || begin.ptr == end || *begin.ptr != '-') return std::nullopt;
  if (std::from_chars(begin.ptr + 1, end, range.end, 16).ec != std::errc()) return std::nullopt;
  return range.end > range.begin ? std::optional(range) : std::nullopt;
}

// The mappings to hold. A thread's stack lies directly behind pages that nobody may touch, and is
// as long as stacks are.
std::vector<Range> own_memory() {
  rlimit stack{};
  getrlimit(RLIMIT_STACK, &stack);
  std::vector<Range> ranges;
  std::ifstream maps("/proc/self/maps");
  uintptr_t guard_end = 0;
  for (std::string line; std::getline(maps, line);) {
    const auto range = range_of(line);
    if (!range) continue;
    const bool behind_guard = range->begin == guard_end && guard_end != 0;
    if (line.find(" ---p ") != std::string::npos) guard_end = range->end;
    const bool is_stack = behind_guard && range->bytes() <= stack.rlim_cur;
    if (is_own_memory(line) && !is_stack && range->bytes() >= kLeast) ranges.push_back(*range);
  }
  return ranges;
}

// Where the kernel is too old to be asked for pages: a write to each that changes nothing.
void touch(const Range& range, size_t page_bytes) {
  for (uintptr_t at = range.begin; at < range.end; at += page_bytes) {
    auto* byte = reinterpret_cast<unsigned char*>(at);  // NOLINT(performance-no-int-to-ptr)
    __atomic_fetch_or(byte, 0, __ATOMIC_RELAXED);
  }
}

// Of a mapping that may only be read.
void take_pages(std::span<const std::byte> file, size_t page_bytes) {
#ifdef MADV_POPULATE_READ
  void* address = const_cast<std::byte*>(file.data());
  if (madvise(address, file.size(), MADV_POPULATE_READ) == 0) return;
#endif
  for (size_t at = 0; at < file.size(); at += page_bytes) {
    [[maybe_unused]] const volatile std::byte read = file[at];
  }
}

}  // namespace

int64_t hold_memory() {
  const auto page_bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  int64_t held = 0;
  for (const Range& range : own_memory()) {
    void* address = reinterpret_cast<void*>(range.begin);  // NOLINT(performance-no-int-to-ptr)
    held += static_cast<int64_t>(range.bytes());
    if (mlock(address, range.bytes()) == 0) continue;
#ifdef MADV_POPULATE_WRITE
    if (madvise(address, range.bytes(), MADV_POPULATE_WRITE) == 0) continue;
#endif
    touch(range, page_bytes);
  }
  return held;
}

HeldFiles hold_files(std::span<const std::span<const std::byte>> files) {
  const auto page_bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  HeldFiles held;
  for (const auto& file : files) held.bytes += static_cast<int64_t>(file.size());
  const auto available = engine::available_memory_bytes();
  const bool roomy = available && *available / 2 >= static_cast<uint64_t>(held.bytes);
  for (const auto& file : files) {
    if (roomy && mlock(file.data(), file.size()) == 0) {
      held.locked_bytes += static_cast<int64_t>(file.size());
    } else {
      take_pages(file, page_bytes);
    }
  }
  return held;
}

void TimedMemory::hold(int64_t batch, int64_t capacity) {
  if (held_bytes_ >= 0 && batch == batch_ && capacity == capacity_) return;
  batch_ = batch;
  capacity_ = capacity;
  held_bytes_ = hold_memory();
}

TimedMemory::Faults TimedMemory::now() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return {0, usage.ru_minflt, usage.ru_majflt};
}

void TimedMemory::begin() {
  begin_ = now();
}

void TimedMemory::end() {
  const Faults at_end = now();
  region_ = {1, at_end.minor - begin_.minor, at_end.major - begin_.major};
}

void TimedMemory::count(bool cold) {
  Faults& sum = cold ? cold_ : warm_;
  sum = {sum.rows + region_.rows, sum.minor + region_.minor, sum.major + region_.major};
}

Json TimedMemory::faults_to_json(const Faults& faults) {
  return {{"rows", faults.rows}, {"minor", faults.minor}, {"major", faults.major}};
}

Json TimedMemory::to_json() const {
  Json json = {{"cold_faults", faults_to_json(cold_)}, {"warm_faults", faults_to_json(warm_)}};
  if (held_bytes_ >= 0) json["held_bytes"] = held_bytes_;
  return json;
}

}  // namespace assay
