// Parts of the CUDA printer that its files share.
#pragma once

#include <string>
#include <string_view>

#include "engine/codegen/kernel.h"
#include "engine/codegen/print.h"

namespace assay::engine {

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
int64_t cuda_attention_tile(int64_t head_dim);  // queries, and positions, of a prefill block

}  // namespace assay::engine
