// Figures about an engine's processes for /metrics.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

namespace assay::server {

// The thread that calls the engine writes them, any thread reads them. The second of two entries is
// of the process with both ways, the first of the one that stands in, operator by operator.
struct EngineCounts {
  std::array<std::atomic<int64_t>, 2> starts = {};  // processes that became ready
  std::array<std::atomic<int64_t>, 2> ready = {};   // 1: one is there
  std::array<std::atomic<int64_t>, 2> slots = {};   // requests there
  std::atomic<int64_t> lost = 0;                    // requests that aren't restored yet
  std::atomic<int64_t> restored_tokens = 0;

  std::string metrics() const;  // for Prometheus
};

}  // namespace assay::server
