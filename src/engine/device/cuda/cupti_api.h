// The functions of CUPTI that the engine calls, as declared in cupti.h and looked up at run time,
// and those parts of its buffers' records that are read here. cupti_api_test.cc holds all of it
// against that header where a machine has it.
#pragma once

#include <cstddef>
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

using CuptiStatus = int;  // CUptiResult; 0: success
// Callbacks: the first hands CUPTI an empty buffer, the second takes a full one.
using BufferRequested = void (*)(uint8_t** buffer, size_t* bytes, size_t* most_records);
using BufferCompleted = void (*)(struct CUctx_st*, uint32_t stream, uint8_t* buffer, size_t bytes,
                                 size_t valid_bytes);

// X(member, symbol, arguments)
#define ASSAY_CUPTI(X)                                                                      \
  X(version, cuptiGetVersion, (uint32_t*))                                                  \
  X(register_callbacks, cuptiActivityRegisterCallbacks, (BufferRequested, BufferCompleted)) \
  X(enable, cuptiActivityEnable, (int))                                                     \
  X(disable, cuptiActivityDisable, (int))                                                   \
  X(flush, cuptiActivityFlushAll, (uint32_t))                                               \
  X(next_record, cuptiActivityGetNextRecord, (uint8_t*, size_t, int**))                     \
  X(timestamp, cuptiGetTimestamp, (uint64_t*))                                              \
  X(function_name, cuptiGetCallbackName, (int, uint32_t, const char**))                     \
  X(error_text, cuptiGetResultString, (CuptiStatus, const char**))

struct CuptiApi {
#define ASSAY_CUPTI_MEMBER(member, symbol, arguments) CuptiStatus(*member) arguments = nullptr;
  ASSAY_CUPTI(ASSAY_CUPTI_MEMBER)
#undef ASSAY_CUPTI_MEMBER
};

}  // namespace assay::engine::cuda
