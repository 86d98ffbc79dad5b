// The functions of NVRTC that the engine calls, as declared in nvrtc.h and looked up at run time.
// nvrtc_api_test.cc holds every line against that header where a machine has it.
#pragma once

#include <cstddef>

namespace assay::engine {

using NvrtcStatus = int;                     // nvrtcResult; 0: success
using NvrtcProgram = struct _nvrtcProgram*;  // NOLINT(bugprone-reserved-identifier): the header's

// X(member, symbol, arguments)
#define ASSAY_NVRTC(X)                                                                      \
  X(version, nvrtcVersion, (int*, int*))                                                    \
  X(target_count, nvrtcGetNumSupportedArchs, (int*))                                        \
  X(targets, nvrtcGetSupportedArchs, (int*))                                                \
  X(create, nvrtcCreateProgram,                                                             \
    (NvrtcProgram*, const char*, const char*, int, const char* const*, const char* const*)) \
  X(destroy, nvrtcDestroyProgram, (NvrtcProgram*))                                          \
  X(compile, nvrtcCompileProgram, (NvrtcProgram, int, const char* const*))                  \
  X(cubin_size, nvrtcGetCUBINSize, (NvrtcProgram, size_t*))                                 \
  X(cubin, nvrtcGetCUBIN, (NvrtcProgram, char*))                                            \
  X(log_size, nvrtcGetProgramLogSize, (NvrtcProgram, size_t*))                              \
  X(log, nvrtcGetProgramLog, (NvrtcProgram, char*))

struct NvrtcApi {
#define ASSAY_NVRTC_MEMBER(member, symbol, arguments) NvrtcStatus(*member) arguments = nullptr;
  ASSAY_NVRTC(ASSAY_NVRTC_MEMBER)
#undef ASSAY_NVRTC_MEMBER
  const char* (*error_text)(NvrtcStatus) = nullptr;  // nvrtcGetErrorString
};

}  // namespace assay::engine
