// Kernels as CUDA C++ for NVRTC, and how they are launched.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/codegen/kernel.h"

namespace assay::engine {

// A kernel as CUDA C++ without any #include, for NVRTC. Every entry point takes, by value,
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
  // Products of many rows, which a library multiplies: what goes before and behind, as
  // library_product() has it.
  std::optional<CudaLaunch> prologue, epilogue;
};
// Of the dims, kv_len is without influence.
CudaLaunches cuda_launches(const Kernel& kernel, const DimValues& dims, int64_t capacity);
int64_t cuda_workspace_floats(const Kernel& kernel, const DimValues& dims, int64_t capacity);

// Parts that the printer's files share.
constexpr int64_t kCudaThreads = 256;  // of every block
constexpr int64_t kCudaWarps = kCudaThreads / 32;
// Ints at the workspace's start that products count their blocks in; zeros between launches.
constexpr int64_t kCudaCounters = 16384;

extern const std::string_view kCudaPrelude;

// struct Args, the one parameter of every entry point, by value.
std::string cuda_args_struct(const Kernel& kernel);
// Lines that define the dims, and the bound buffers, from `args`.
std::string cuda_arguments(const Kernel& kernel);
// "extern "C" __global__ void NAME(const Args args", with the launch bound; open at its end.
std::string cuda_entry(std::string_view name);

std::string print_cuda_product(const Kernel& kernel, const ProductKernel& product);
std::string print_cuda_attention(const Kernel& kernel, const AttentionKernel& attention);

// How a product's work is cut: blocks take `rows` rows at a time, and one of `splits` slices of the
// inputs each.
struct CudaProductShape {
  int64_t rows = 1;
  int64_t splits = 1;
  int64_t slice = 0;  // inputs of one split, a multiple of 16
};
CudaProductShape cuda_product_shape(const Kernel& kernel, const ProductKernel& product);

// Ranges that a head's positions are cut into while decoding. Of the capacity alone: a captured
// graph is replayed for every length.
int64_t cuda_attention_splits(int64_t capacity);
constexpr int64_t kCudaMostHeadDim = 256;  // of attention

}  // namespace assay::engine
