// Kernels as CUDA C++ for NVRTC, and their launches.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/codegen/kernel.h"
#include "engine/codegen/print_c.h"

namespace assay::engine {

// A kernel as CUDA C++ without any #include, for NVRTC. Every entry point takes, by value,
//   struct Args { void* buffers[kernel.bound_buffers]; const long* dims; float* workspace; };
// all of them addresses in device memory, and behind them the tensor maps of
// CudaLaunches::matrices, if there are any. `dims` are KernelArgs::dims: the device reads them, so
// that a captured graph is replayed for every length. The workspace is as cuda_workspace() has it;
// launches one after the other may share it. bad_input names the kernel that fits no template, such
// as a product whose weight isn't packed in rows.
Result<std::string> print_cuda(const Kernel& kernel);

// The entry assay_run of a kernel of rows with more to do: further members of struct Args, lines
// ahead of those of row blockIdx.x, and lines behind them, which the block runs that ends the row.
struct CudaRowsMore {
  std::string_view members, ahead, behind;
};
std::string print_cuda_rows(const Kernel& kernel, const CudaRowsMore& more);
// Behind the row's lines, in every thread: the value of an argmax, a float, by its index's name.
inline std::string cuda_largest(const std::string& argmax) {
  return argmax + "_best";
}

// Attention over up to so many queries a row of the batch is split over positions.
constexpr int64_t kCudaFewQueries = 8;

struct CudaLaunch {
  std::string entry;
  int64_t blocks_x = 1, blocks_y = 1, blocks_z = 1;
  int64_t threads = 256;
  int64_t shared_bytes = 0;  // beside the kernel's own, which needs no opting in
};
// A matrix in device memory of which a kernel copies `box_lines` lines of 64 neighbouring elements
// at a time, by a tensor map: its lines lie `pitch` elements of 16 bits apart.
struct CudaMatrix {
  std::optional<ir::BufferId> buffer;  // absent: in the workspace
  int64_t workspace_at = 0;            // floats from its begin on
  int64_t lines = 0, pitch = 0, box_lines = 0;
};
struct CudaLaunches {
  std::vector<CudaLaunch> run;  // the whole kernel, in this order
  // Products of many rows, which a library multiplies: the kernels before and behind, as
  // library_product() has them.
  std::optional<CudaLaunch> prologue, epilogue;
  // Decodes a weight in blocks, ahead of the library: it writes the values to Args::workspace, in
  // the weight's type.
  std::optional<CudaLaunch> decode;
  // In the epilogue's place where the product behind it reads e4m3 (ProductKernel::codes_output):
  // its buffer `codes_buffer` is bound to the place of those.
  std::optional<CudaLaunch> to_codes;
  ir::BufferId codes_buffer = 0;
  // A tensor map of each stands behind the other members of every entry's Args, in this order, from
  // a multiple of 64 bytes on.
  std::vector<CudaMatrix> matrices;
};
// The launches of a run with these dims; kv_len has no influence on them.
CudaLaunches cuda_launches(const Kernel& kernel, const DimValues& dims, int64_t capacity);
// Floats that lie ahead of Args::workspace, where blocks leave sums for each other, or choices of
// 8 bytes (`words` is a multiple of 64), and which are zeros between launches, and from it on, of
// which the first kCudaCounters are counters: zeros too.
struct CudaWorkspace {
  int64_t words = 0, floats = 0;
  size_t bytes() const { return static_cast<size_t>(words + floats) * sizeof(float); }
  // The workspace's address in such a block of memory.
  uint64_t place_in(uint64_t block) const {
    return block + static_cast<uint64_t>(words) * sizeof(float);
  }
};
// Any multiple of 256 bytes may begin it.
CudaWorkspace cuda_workspace(const Kernel& kernel, const DimValues& dims, int64_t capacity);

// Parts that the printer's files share.
constexpr int64_t kCudaThreads = 256;  // of a block of most kernels but products

constexpr int64_t kCudaMultiprocessors = 132;  // of an H200; right on others, not as fast

// Ints at Args::workspace that kernels count their blocks in; zeros between launches.
constexpr int64_t kCudaCounters = 16384;

// The begin of every kernel, for blocks of so many threads.
std::string cuda_prelude(int64_t threads = kCudaThreads);
// Defines BOUNDS, of a kernel's registers: `launch_bounds`, or, if that isn't 0, a thread has at
// most `registers`. Compilers before CUDA 12.4 have no such bound: there as many threads share a
// multiprocessor's.
std::string cuda_bounds_text(std::string_view launch_bounds, int64_t registers);

// For kernels on tensor cores, of elements "f16" or "bf16": pack(), which rounds two numbers to a
// word of them, and multiply(), mma.m16n8k16, which adds to a warp's sums. Once in a namespace.
std::string cuda_tensor_text(std::string_view element);

// from_half_word(), which widens an element of the type where it has 16 bits, and widen(), which
// does so with 16 bytes of elements.
std::string cuda_widen_text(DType dtype);

// struct Args, the one parameter of every entry point, by value.
std::string cuda_args_struct(const Kernel& kernel, std::string_view more_members = {});
// Lines that define the dims, and the bound buffers, from `args`.
std::string cuda_arguments(const Kernel& kernel);
// "extern "C" __global__ void NAME(const Args args", with the launch bound; open at its end. The
// body calls let_next_begin() first, and wait_for_kernels_ahead() before it reads anything that
// another kernel writes.
std::string cuda_entry(std::string_view name);

// Defines epilogue_row(): by the lanes that epilogue_lane() counts up to EPILOGUE_LANES, which are
// defined before it, for `count` packed columns of a row from `column` on, all of one segment, with
// their products in memory of the tile buffer's type. `counted`: its callers' count is a constant.
std::string cuda_epilogue_row(const Kernel& kernel, const ProductKernel& product, bool counted);

// The lines of one segment in it, which define the segment's column and count behind `head`.
std::string cuda_epilogue_segment(const Kernel& kernel, const ProductKernel& product,
                                  size_t segment, const CTarget& target,
                                  std::string_view head = {});

std::string print_cuda_product(const Kernel& kernel, const ProductKernel& product);
std::string print_cuda_attention(const Kernel& kernel, const AttentionKernel& attention);

// Ranges that a head's positions are cut into while decoding, a block each. Not of the length: a
// captured graph is replayed for every one.
int64_t cuda_attention_splits(const Kernel& kernel, const AttentionKernel& k, const DimValues& dims,
                              int64_t capacity);
// Floats that the ranges' parts take.
int64_t cuda_attention_parts(const Kernel& kernel, const AttentionKernel& k, const DimValues& dims,
                             int64_t capacity);
// Blocks of a row, query and range; threads of such a block, and the shared memory that they ask
// for.
int64_t cuda_attention_heads(const Kernel& kernel, const AttentionKernel& k);
int64_t cuda_decode_threads(const Kernel& kernel, const AttentionKernel& k);
int64_t cuda_decode_shared_bytes(const Kernel& kernel, const AttentionKernel& k);
constexpr int64_t kCudaMostHeadDim = 256;  // of attention

}  // namespace assay::engine
