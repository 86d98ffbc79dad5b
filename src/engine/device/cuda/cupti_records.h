// What CUPTI writes into a buffer, as far as it is read here; cupti_test.cc holds it against
// NVIDIA's header where a machine has it.
#pragma once

#include <cstdint>

namespace assay::engine::cuda {

// CUpti_ActivityKind
inline constexpr int kCopyKind = 1, kFillKind = 2, kCallKind = 4, kKernelKind = 10;
inline constexpr int kDriverDomain = 1;      // CUPTI_CB_DOMAIN_DRIVER_API
inline constexpr uint32_t kFlushForced = 1;  // CUPTI_ACTIVITY_FLAG_FLUSH_FORCED

// The beginnings of CUPTI's records, which its versions leave as they are.
struct [[gnu::packed]] KernelRecord {
  int kind;
  uint8_t cache_configuration, shared_configuration;
  uint16_t registers;
  int32_t partitioned_requested, partitioned_executed;
  uint64_t start, end, completed;
  uint32_t device, context, stream;
  int32_t grid[3], block[3];
  int32_t static_shared_bytes, dynamic_shared_bytes;
  uint32_t local_bytes_a_thread, local_bytes, correlation;
  int64_t grid_id;
  const char* name;
};
static_assert(sizeof(KernelRecord) == 112);
struct [[gnu::packed]] TransferRecord {  // copies and fills
  int kind;
  uint32_t what;
  uint64_t bytes, start, end;
};
struct [[gnu::packed]] CallRecord {
  int kind;
  uint32_t function;
  uint64_t start, end;
};

}  // namespace assay::engine::cuda
