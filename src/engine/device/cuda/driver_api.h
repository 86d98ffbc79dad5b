// The functions of the CUDA driver that the engine calls, as declared in cuda.h and looked up at
// run time: nothing of CUDA is needed to build. driver_api_test.cc holds every line against cuda.h
// where a machine has it.
#pragma once

#include <cstddef>

namespace assay::engine::cuda {

using Status = int;  // CUresult; 0: success
using DeviceId = int;
using Address = unsigned long long;  // CUdeviceptr
using Context = struct CUctx_st*;
using Module = struct CUmod_st*;
using Function = struct CUfunc_st*;
using Stream = struct CUstream_st*;
using Event = struct CUevent_st*;
using Graph = struct CUgraph_st*;
using GraphExec = struct CUgraphExec_st*;
struct Uuid {  // CUuuid
  char bytes[16];
};

constexpr Status kOutOfMemory = 2;  // CUDA_ERROR_OUT_OF_MEMORY
constexpr Status kNotReady = 600;   // CUDA_ERROR_NOT_READY
enum DeviceAttribute : int {        // CUdevice_attribute
  kMultiprocessors = 16,            // ..._MULTIPROCESSOR_COUNT
  kL2CacheBytes = 38,               // ..._L2_CACHE_SIZE
  kComputeMajor = 75,               // ..._COMPUTE_CAPABILITY_MAJOR
  kComputeMinor = 76,
};
enum FunctionAttribute : int {  // CUfunction_attribute
  kMostSharedBytes = 8,         // ..._MAX_DYNAMIC_SHARED_SIZE_BYTES
  kSharedCarveout = 9,          // ..._PREFERRED_SHARED_MEMORY_CARVEOUT
};
constexpr int kCaptureThreadLocal = 1;  // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
constexpr unsigned kNonBlocking = 1;    // CU_STREAM_NON_BLOCKING
constexpr unsigned kNoTime = 2;         // CU_EVENT_DISABLE_TIMING

struct RowsCopy {  // CUDA_MEMCPY2D
  size_t from_x = 0, from_y = 0;
  int from_type = 2;  // CU_MEMORYTYPE_DEVICE
  const void* from_host = nullptr;
  Address from = 0;
  void* from_array = nullptr;
  size_t from_pitch = 0;
  size_t to_x = 0, to_y = 0;
  int to_type = 2;
  void* to_host = nullptr;
  Address to = 0;
  void* to_array = nullptr;
  size_t to_pitch = 0;
  size_t width_bytes = 0, height = 0;
};

struct alignas(64) TensorMap {  // CUtensorMap
  char bytes[128] = {};
};
constexpr int kElementsOf16Bits = 1;    // CU_TENSOR_MAP_DATA_TYPE_UINT16
constexpr int kSwizzleOf128Bytes = 3;   // CU_TENSOR_MAP_SWIZZLE_128B
constexpr int kPromotesTo256Bytes = 3;  // CU_TENSOR_MAP_L2_PROMOTION_L2_256B

struct LaunchAttribute {  // CUlaunchAttribute
  int id = 0;
  char unused[4] = {};
  union {
    char bytes[64];
    int flag;
  } value = {};
};
// CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION: may begin while the kernel ahead runs.
constexpr int kBeginEarly = 6;
struct LaunchConfig {  // CUlaunchConfig
  unsigned blocks_x = 1, blocks_y = 1, blocks_z = 1;
  unsigned threads_x = 1, threads_y = 1, threads_z = 1;
  unsigned shared_bytes = 0;
  Stream stream = nullptr;
  LaunchAttribute* attributes = nullptr;
  unsigned attribute_count = 0;
};

// X(member, symbol, arguments)
#define ASSAY_CUDA_DRIVER(X)                                                                 \
  X(init, cuInit, (unsigned))                                                                \
  X(driver_version, cuDriverGetVersion, (int*))                                              \
  X(device_count, cuDeviceGetCount, (int*))                                                  \
  X(device_get, cuDeviceGet, (DeviceId*, int))                                               \
  X(device_name, cuDeviceGetName, (char*, int, DeviceId))                                    \
  X(device_uuid, cuDeviceGetUuid_v2, (Uuid*, DeviceId))                                      \
  X(device_memory, cuDeviceTotalMem_v2, (size_t*, DeviceId))                                 \
  X(device_attribute, cuDeviceGetAttribute, (int*, DeviceAttribute, DeviceId))               \
  X(context_retain, cuDevicePrimaryCtxRetain, (Context*, DeviceId))                          \
  X(context_release, cuDevicePrimaryCtxRelease_v2, (DeviceId))                               \
  X(context_set, cuCtxSetCurrent, (Context))                                                 \
  X(memory_info, cuMemGetInfo_v2, (size_t*, size_t*))                                        \
  X(memory_allocate, cuMemAlloc_v2, (Address*, size_t))                                      \
  X(memory_free, cuMemFree_v2, (Address))                                                    \
  X(host_allocate, cuMemHostAlloc, (void**, size_t, unsigned))                               \
  X(host_free, cuMemFreeHost, (void*))                                                       \
  X(upload, cuMemcpyHtoDAsync_v2, (Address, const void*, size_t, Stream))                    \
  X(download, cuMemcpyDtoHAsync_v2, (void*, Address, size_t, Stream))                        \
  X(copy, cuMemcpyDtoDAsync_v2, (Address, Address, size_t, Stream))                          \
  X(copy_rows, cuMemcpy2DAsync_v2, (const RowsCopy*, Stream))                                \
  X(fill, cuMemsetD8Async, (Address, unsigned char, size_t, Stream))                         \
  X(stream_create, cuStreamCreate, (Stream*, unsigned))                                      \
  X(stream_destroy, cuStreamDestroy_v2, (Stream))                                            \
  X(stream_query, cuStreamQuery, (Stream))                                                   \
  X(stream_synchronize, cuStreamSynchronize, (Stream))                                       \
  X(capture_begin, cuStreamBeginCapture_v2, (Stream, int))                                   \
  X(capture_end, cuStreamEndCapture, (Stream, Graph*))                                       \
  X(graph_destroy, cuGraphDestroy, (Graph))                                                  \
  X(graph_instantiate, cuGraphInstantiateWithFlags, (GraphExec*, Graph, unsigned long long)) \
  X(graph_launch, cuGraphLaunch, (GraphExec, Stream))                                        \
  X(graph_exec_destroy, cuGraphExecDestroy, (GraphExec))                                     \
  X(event_create, cuEventCreate, (Event*, unsigned))                                         \
  X(event_destroy, cuEventDestroy_v2, (Event))                                               \
  X(event_record, cuEventRecord, (Event, Stream))                                            \
  X(event_synchronize, cuEventSynchronize, (Event))                                          \
  X(module_load, cuModuleLoadData, (Module*, const void*))                                   \
  X(module_unload, cuModuleUnload, (Module))                                                 \
  X(module_function, cuModuleGetFunction, (Function*, Module, const char*))                  \
  X(function_set, cuFuncSetAttribute, (Function, FunctionAttribute, int))                    \
  X(launch, cuLaunchKernelEx, (const LaunchConfig*, Function, void**, void**))               \
  X(error_name, cuGetErrorName, (Status, const char**))                                      \
  X(error_text, cuGetErrorString, (Status, const char**))

struct DriverApi {
#define ASSAY_CUDA_MEMBER(member, symbol, arguments) Status(*member) arguments = nullptr;
  ASSAY_CUDA_DRIVER(ASSAY_CUDA_MEMBER)
#undef ASSAY_CUDA_MEMBER
  // cuTensorMapEncodeTiled; null: drivers before CUDA 12 have none.
  Status (*encode_map)(TensorMap*, int type, unsigned rank, void* address,
                       const unsigned long long* sizes, const unsigned long long* pitches,
                       const unsigned* box, const unsigned* steps, int interleave, int swizzle,
                       int promotion, int fill) = nullptr;
  // CUDA 12.8 renamed it; whichever the driver has.
  Status (*event_elapsed)(float* ms, Event start, Event end) = nullptr;
};

}  // namespace assay::engine::cuda
