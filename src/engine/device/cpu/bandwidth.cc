// Streaming reads with SIMD: four streams a thread (engine/memory/read_ahead.h), because one stream
// leaves a core's miss buffers half empty (Cascade Lake: 11.6 GB/s with one, 13.7 with
// four).
#include "engine/device/cpu/bandwidth.h"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/files/files.h"
#include "base/text/text.h"
#include "engine/memory/read_ahead.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/device/cpu/bandwidth.cc"
#include "hwy/foreach_target.h"  // must come first

#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace assay::engine::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Sum of the words; `bytes` is a multiple of kShareGrain.
uint32_t sum_words(const std::byte* data, size_t bytes) {
  constexpr size_t kStreams = 4;
  constexpr size_t kLineWords = 16;
  const hn::CappedTag<uint32_t, kLineWords> d;
  const size_t stream_words = bytes / sizeof(uint32_t) / kStreams;
  const auto* words = reinterpret_cast<const uint32_t*>(data);
  auto sum0 = hn::Zero(d), sum1 = hn::Zero(d), sum2 = hn::Zero(d), sum3 = hn::Zero(d);
  for (size_t i = 0; i < stream_words; i += kLineWords) {
    const uint32_t* p = words + i;
    // A prefetch past the end reads nothing that isn't mapped: it can't fault.
    hwy::Prefetch(p + kReadAheadBytes / sizeof(uint32_t));
    hwy::Prefetch(p + stream_words + kReadAheadBytes / sizeof(uint32_t));
    hwy::Prefetch(p + 2 * stream_words + kReadAheadBytes / sizeof(uint32_t));
    hwy::Prefetch(p + 3 * stream_words + kReadAheadBytes / sizeof(uint32_t));
    for (size_t j = 0; j < kLineWords; j += hn::Lanes(d)) {
      sum0 = hn::Add(sum0, hn::Load(d, p + j));
      sum1 = hn::Add(sum1, hn::Load(d, p + stream_words + j));
      sum2 = hn::Add(sum2, hn::Load(d, p + 2 * stream_words + j));
      sum3 = hn::Add(sum3, hn::Load(d, p + 3 * stream_words + j));
    }
  }
  uint32_t lanes[kLineWords];
  hn::StoreU(hn::Add(hn::Add(sum0, sum1), hn::Add(sum2, sum3)), d, lanes);
  return std::accumulate(lanes, lanes + hn::Lanes(d), uint32_t{0});
}

}  // namespace assay::engine::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::engine {
HWY_EXPORT(sum_words);

namespace {

constexpr size_t kShareGrain = 4096;  // four streams of whole cache lines
constexpr uint32_t kWord = 0x01010101;
constexpr size_t kWindowBytes = size_t{32} << 20;

// A file of the kernel's with one number; absent for "max", as for a file that isn't there.
std::optional<uint64_t> number_in(const std::filesystem::path& path) {
  const auto text = read_file(path);
  uint64_t value = 0;
  if (!text || std::from_chars(text->data(), text->data() + text->size(), value).ec != std::errc())
    return std::nullopt;
  return value;
}

// The figure of a line such as "MemAvailable:   123 kB", in bytes.
std::optional<uint64_t> kib_of(const std::filesystem::path& path, std::string_view key) {
  const auto text = read_file(path);
  const size_t at = text ? text->find(key) : std::string::npos;
  const size_t digits = at == std::string::npos ? at : text->find_first_of("0123456789", at);
  if (digits == std::string::npos) return std::nullopt;
  uint64_t value = 0;
  std::from_chars(text->data() + digits, text->data() + text->size(), value);
  return value * 1024;
}

}  // namespace

Result<BandwidthProbe> BandwidthProbe::create(ThreadPool& pool, size_t bytes) {
  const size_t threads = pool.size();
  const size_t share = (bytes / threads + kShareGrain) / kShareGrain * kShareGrain;
  auto memory = HugeMemory::allocate(share * threads);
  if (!memory) return with_context("bandwidth probe", memory.error());
  BandwidthProbe probe(pool, std::move(memory).value(), share);
  std::byte* first = probe.memory_.data();
  pool.run([&](size_t i) { std::memset(first + i * share, kWord & 0xFF, share); });
  return probe;
}

double BandwidthProbe::measure_once() {
  return measure_part(0, 1);
}

double BandwidthProbe::measure_part(size_t part, size_t parts) {
  assert(memory_.data() != nullptr && part < parts);
  const size_t grains = share_bytes_ / kShareGrain;
  const size_t begin = grains * part / parts * kShareGrain;
  const size_t bytes = grains * (part + 1) / parts * kShareGrain - begin;
  const std::byte* first = memory_.data() + begin;
  const auto sum = HWY_DYNAMIC_DISPATCH(sum_words);
  std::vector<uint32_t> sums(pool_->size());
  const int64_t start_ns = monotonic_now_ns();
  pool_->run([&](size_t i) { sums[i] = sum(first + i * share_bytes_, bytes); });
  const int64_t elapsed_ns = std::max<int64_t>(1, monotonic_now_ns() - start_ns);
  checksum_ = std::accumulate(sums.begin(), sums.end(), uint32_t{0});
  return static_cast<double>(bytes * pool_->size()) / static_cast<double>(elapsed_ns);
}

uint32_t BandwidthProbe::expected_checksum() const {
  return kWord * static_cast<uint32_t>(size_bytes() / sizeof(uint32_t));
}

std::optional<uint64_t> available_memory_bytes(const std::filesystem::path& root) {
  std::optional<uint64_t> least = kib_of(root / "proc/meminfo", "MemAvailable:");
  const auto groups = read_file(root / "proc/self/cgroup");
  for (const std::string& line : split(groups.value_or(""), '\n')) {
    if (!line.starts_with("0::/")) continue;  // version 1 has other numbers
    const std::filesystem::path top = root / "sys/fs/cgroup";
    auto folder = (top / line.substr(4)).lexically_normal();
    for (;; folder = folder.parent_path()) {
      const auto most = number_in(folder / "memory.max");
      const auto used = number_in(folder / "memory.current");
      if (most && used)
        least = std::min(least.value_or(UINT64_MAX), *most - std::min(*most, *used));
      if (folder == top || !folder.has_relative_path()) break;
    }
  }
  return least;
}

// sysfs writes "36608K".
std::optional<uint64_t> last_level_cache_bytes(const std::filesystem::path& root) {
  std::optional<uint64_t> largest;
  for (int index = 0; index < 8; ++index) {
    const auto text =
        read_file(root / fmt::format("sys/devices/system/cpu/cpu0/cache/index{}/size", index));
    if (!text) break;
    char* unit = nullptr;
    const uint64_t count = std::strtoull(text->c_str(), &unit, 10);
    const uint64_t scale = *unit == 'K' ? 1024 : *unit == 'M' ? 1024 * 1024 : 1;
    largest = std::max(largest.value_or(0), count * scale);
  }
  return largest;
}

Result<double> measure_read_bandwidth(ThreadPool& pool, size_t bytes, int passes) {
  const auto available = available_memory_bytes();
  if (available && *available < 2 * uint64_t{bytes}) {
    return environment_error(
        "bandwidth probe: expected {} of free memory (twice its buffer), found {}",
        format_bytes(2 * static_cast<double>(bytes)),
        format_bytes(static_cast<double>(*available)));
  }
  ASSAY_TRY(BandwidthProbe probe, BandwidthProbe::create(pool, bytes));
  probe.measure_once();
  const size_t windows = std::max<size_t>(1, probe.size_bytes() / kWindowBytes);
  double best = 0;
  for (int pass = 0; pass < passes; ++pass) {
    for (size_t i = 0; i < windows; ++i) best = std::max(best, probe.measure_part(i, windows));
  }
  return best;
}

}  // namespace assay::engine
#endif  // HWY_ONCE
