// The interface by which compiled CPU kernels are called.
#pragma once

#include <cstdint>

#include "engine/codegen/kernel.h"

namespace assay::engine {

// Arguments of every compiled kernel; `buffers` in the order of Kernel::buffers. Caches are bound
// at their first element and have strides [kv_heads * capacity * head_dim, capacity * head_dim,
// head_dim, 1].
struct KernelArgs {
  void* const* buffers;
  int64_t dims[4];  // batch, q_len, kv_len, capacity
  float* scratch;   // the share's own, kernel_scratch_floats() of them
  float* shared;    // of all shares, kernel_shared_floats() of them; zeros at the first call, kept
                    // between calls
};

// Entry points of a compiled CPU kernel. The shares of a kernel are called with the same args
// except for scratch, at once or one after the other, on any thread; all are done before the next
// kernel's begin.
struct KernelFunctions {
  // A share of the whole kernel. Products: the matrix-vector form; null where all products come
  // from a library.
  void (*run)(const KernelArgs* args, int64_t share, int64_t shares) = nullptr;
  // Products whose sums come from a library: of many rows, or with weights in blocks. prologue:
  // rows [begin, end) of x into out [end - begin, inputs]; null without one.
  void (*prologue)(const KernelArgs* args, int64_t begin, int64_t end, float* out) = nullptr;
  // products: [row_end - row_begin, pitch] for the tiles [tile_begin, tile_end).
  void (*epilogue)(const KernelArgs* args, int64_t row_begin, int64_t row_end, int64_t tile_begin,
                   int64_t tile_end, const float* products, int64_t pitch) = nullptr;
};

// Floats of a share's scratch, and of all shares' common one, in a run with these dims.
int64_t kernel_scratch_floats(const Kernel& kernel, const DimValues& dims);
int64_t kernel_shared_floats(const Kernel& kernel, const DimValues& dims, int64_t threads);

}  // namespace assay::engine
