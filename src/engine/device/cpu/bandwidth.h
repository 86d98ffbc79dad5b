// The machine's read bandwidth from memory, measured: the limit that a memory-bound kernel is held
// against.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/process/thread_pool.h"
#include "base/result.h"
#include "engine/memory/huge_memory.h"

namespace assay::engine {

// A buffer that the pool's threads stream through. Keep one to interleave its passes with a
// kernel's own repetitions, so that noise of the machine hits both alike; measure_read_bandwidth()
// is for the rest.
class BandwidthProbe {
 public:
  static constexpr size_t kDefaultBytes = size_t{512} << 20;

  // Maps `bytes` (rounded up to a few KiB a thread) of anonymous memory, in huge pages where the
  // system grants them, each share written first by the thread that reads it. No memory:
  // environment error. The pool must outlive the probe. `bytes` has to be a multiple of the
  // last-level cache for the figure to mean memory.
  static Result<BandwidthProbe> create(ThreadPool& pool, size_t bytes = kDefaultBytes);

  // One pass of all threads over the buffer: GB/s (1e9 bytes). Takes about bytes / bandwidth.
  double measure_once();
  // The same over one of `parts` equal parts of every thread's share; 0 <= part < parts.
  double measure_part(size_t part, size_t parts);
  // Sum of the 32-bit words (modulo 2^32) that were read last: the proof that a pass read all.
  uint32_t checksum() const { return checksum_; }
  uint32_t expected_checksum() const;
  size_t size_bytes() const { return share_bytes_ * pool_->size(); }

 private:
  BandwidthProbe(ThreadPool& pool, HugeMemory memory, size_t share_bytes)
      : pool_(&pool), memory_(std::move(memory)), share_bytes_(share_bytes) {}
  ThreadPool* pool_;
  HugeMemory memory_;
  size_t share_bytes_;  // read by each thread
  uint32_t checksum_ = 0;
};

// Bytes that this process can still take, by the kernel's own figures: MemAvailable of
// /proc/meminfo, and the rest below `memory.max` of its control group (version 2) and those
// above it. Absent if neither is known. `root` stands before the paths, for tests.
std::optional<uint64_t> available_memory_bytes(const std::filesystem::path& root = "/");

// Size of the largest cache of the first CPU. Absent where the machine doesn't say: a virtual one
// may hide its caches. `root`: as above.
std::optional<uint64_t> last_level_cache_bytes(const std::filesystem::path& root = "/");

// `passes` passes after one untimed, each timed in windows of some 32 MiB: the best window, in
// GB/s. The best because other load on the machine can only lower the figure; windows because on a
// loaded machine no whole pass goes undisturbed, while samples of a millisecond, which are held
// against the figure, do. An environment error where memory for twice the buffer isn't available:
// taking it could end this process, or another. About half a second with the defaults at 10 GB/s a
// thread.
Result<double> measure_read_bandwidth(ThreadPool& pool,
                                      size_t bytes = BandwidthProbe::kDefaultBytes, int passes = 7);

}  // namespace assay::engine
