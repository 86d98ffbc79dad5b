// The bytes that a step reads beside the bandwidth of its device: a share of the memory's bandwidth
// is claimed only for bytes that came from memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace assay::engine {

struct StepReads {
  double bytes = 0;  // that a step must read at least
  double nanoseconds = 0;
  std::optional<uint64_t> cache_bytes;  // size of the last-level cache; absent: not known

  double gb_per_s() const { return bytes / nanoseconds; }
  // Then memory is no limit.
  bool fit_cache() const { return cache_bytes && bytes <= static_cast<double>(*cache_bytes); }
};

// "87 % of the 12.00 GB/s that 2 threads of this machine can read", and other words where that
// can't be said: the last-level cache may have helped, or the bandwidth was another one meanwhile.
// Never more than 100 %. `limit_gb_per_s` isn't looked at where the reads fit the cache. `reader`
// is the subject that reads.
std::string against_limit(const StepReads& reads, double limit_gb_per_s, std::string_view reader);

}  // namespace assay::engine
