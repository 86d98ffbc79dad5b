// Kernels as source: one C-like printer of the loop IR, and the templates of each target around it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/codegen/kernel.h"

namespace assay::engine {

// A translation unit of C++ without any #include, with the extern "C" functions of KernelFunctions:
// assay_run, assay_prologue, assay_epilogue. The same kernel gives the same text; layers that
// differ by their weights alone give the same text.
std::string print_cpu(const Kernel& kernel);

// The same kernel as CUDA C++ without any #include, for NVRTC. Every entry point takes, by value,
//   struct Args { void* buffers[kernel.bound_buffers]; const long* dims; float* workspace; };
// all of them addresses in device memory. `dims` are KernelArgs::dims: the device reads them, so
// that a captured graph is replayed for every length. The workspace has cuda_workspace_floats()
// elements, zeros before the first launch; launches one after the other may share it.
// bad_input names what no template fits.
Result<std::string> print_cuda(const Kernel& kernel);

// Attention over up to so many queries a row of the batch is split over positions.
constexpr int64_t kCudaFewQueries = 8;

struct CudaLaunch {
  std::string entry;
  int64_t blocks_x = 1, blocks_y = 1, blocks_z = 1;
  int64_t threads = 256;  // shared memory is static, and within what needs no opting in
};
struct CudaLaunches {
  std::vector<CudaLaunch> run;  // the whole kernel, in this order
  // Products of many rows, whose products come from a library. prologue: a further argument, float*
  // out [rows, inputs]. epilogue: const float* products [rows, pitch] of all tiles, long pitch.
  std::optional<CudaLaunch> prologue, epilogue;
};
// Of the dims, kv_len is without influence.
CudaLaunches cuda_launches(const Kernel& kernel, const DimValues& dims, int64_t capacity);
int64_t cuda_workspace_floats(const Kernel& kernel, const DimValues& dims, int64_t capacity);

}  // namespace assay::engine
