// Kernels as source: one C-like printer of the loop IR, and the templates of each target around it.
#pragma once

#include <cstdint>
#include <string>

#include "engine/codegen/kernel.h"

namespace assay::engine {

// A translation unit of C++ without any #include, with the extern "C" functions of KernelFunctions:
// assay_run, assay_prologue, assay_epilogue. The same kernel gives the same text; layers that
// differ by their weights alone give the same text.
std::string print_cpu(const Kernel& kernel);

// How a CUDA kernel is launched for given sizes.
struct CudaLaunch {
  int64_t blocks_x = 1, blocks_y = 1, threads = 1, shared_bytes = 0;
};
struct CudaKernel {
  std::string source;                // CUDA C++ without any #include, for NVRTC
  std::vector<std::string> entries;  // extern "C" __global__ names, in the order of their launches
};
CudaKernel print_cuda(const Kernel& kernel);

}  // namespace assay::engine
