// Texts and launches of attention, of steps on tensor cores and of prompts: parts of the source of
// every attention kernel.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/codegen/cuda/print_cuda.h"
#include "engine/codegen/kernel.h"

namespace assay::engine {

// True if scores and values are products on tensor cores: keys and values are of 16 bits, and heads
// have a multiple of 16 elements that fits registers.
bool cuda_attention_on_tensor_cores(const Kernel& kernel, const AttentionKernel& attention);

// Positions up to which a head on tensor cores has one range, and at most of a range where there
// are more.
constexpr int64_t kCudaUnsplit = 512;
// The entry assay_decode on tensor cores: pieces that the heads which share keys are cut into, a
// block each; its threads, the shared memory that they ask for, and the blocks that fill a GPU.
int64_t cuda_steps_pieces(const AttentionKernel& attention);
int64_t cuda_steps_threads(const Kernel& kernel, const AttentionKernel& attention);
int64_t cuda_steps_blocks(const Kernel& kernel, const AttentionKernel& attention);
int64_t cuda_steps_shared_bytes(const Kernel& kernel, const AttentionKernel& attention);
// Defines assay_decode, behind what cuda_attention.cc defines for tensor cores.
std::string cuda_steps_text(const Kernel& kernel, const AttentionKernel& attention);

// The entry assay_prefill, and its threads whatever the run's sizes.
CudaLaunch cuda_prefill_launch(const Kernel& kernel, const AttentionKernel& attention,
                               const DimValues& dims);
int64_t cuda_prefill_threads(const Kernel& kernel, const AttentionKernel& attention);
// "f16" or "bf16": the type of whatever of the cache and the queries is of 16 bits. The result may
// be of another.
std::string_view cuda_narrow_name(const Kernel& kernel, const AttentionKernel& attention);
// Defines assay_prefill, behind what cuda_attention.cc defines: HEADS, KV_HEADS, HEAD_DIM, GROUP,
// the buffers' numbers, SCALE, SMALLEST, cache_t, widen_value() and sizes_of().
std::string cuda_prefill_text(const Kernel& kernel, const AttentionKernel& attention);

// The form of assay_prefill for GPUs that multiply by warpgroups: whether it fits, and the same of
// it; its text goes behind what cuda_prefill_text() begins with.
bool multiplies_by_warpgroups(const Kernel& kernel, const AttentionKernel& attention);
CudaLaunch warpgroup_prefill_launch(const Kernel& kernel, const AttentionKernel& attention,
                                    const DimValues& dims);
int64_t warpgroup_prefill_threads(const Kernel& kernel, const AttentionKernel& attention);
std::string warpgroup_prefill_text(const Kernel& kernel, const AttentionKernel& attention);
// Barriers in shared memory: make_barrier(), arrive(), arrive_expecting(), which announces bytes of
// copies, await(), has_come(), which asks once, and show_to_products(), the fence between what
// threads write there and the products that read it.
std::string cuda_barrier_text();
// A ring of stages that products read, behind BARRIERS_AT: full() and empty(), the addresses of a
// stage's barriers from the ring's begin on, and matrix_at(), of lines of 64 elements, which is
// matrix_of(matrix_word()): a matrix 16 bytes further has a word of one more.
std::string cuda_stages_text();
// Products of a warpgroup in the type "f16" or "bf16", asynchronous: begin_products() once their
// operands are there, then multiply_wide<ADDS>() for 64 lines by `columns`, which doesn't add to
// what was in the sums if ADDS is 0, then end_products();
// await_products<N>(sums) until all but the last N of these groups have ended.
std::string cuda_warpgroup_product_text(std::string_view narrow, int64_t columns);
// Behind it multiply_weights(sums, a0, a1, a2, a3, b), whose left operand, 64 lines by 16, is in
// registers. With q = lane % 4 a thread has the words of k = 2 q (a0, a1) and k = 2 q + 8 (a2, a3),
// each for the warp's lines lane / 4 and lane / 4 + 8. `transposed`: neighbours in the right
// operand's memory are of the same k.
std::string cuda_held_product_text(std::string_view narrow, int64_t columns, bool transposed);
// Both for attention: multiply_wide() for scores of 64 queries by `tile` positions, and
// multiply_weights() for 64 by head_dim.
std::string cuda_warpgroup_text(std::string_view narrow, int64_t tile, int64_t head_dim);

}  // namespace assay::engine
