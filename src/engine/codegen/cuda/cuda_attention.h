// Attention of a prompt, a part of the source of every attention kernel.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/codegen/kernel.h"

namespace assay::engine {

// Queries of one head that a block of the entry assay_prefill takes: its blocks are batch x heads
// in x, tiles of queries in y.
int64_t cuda_prefill_queries(const Kernel& kernel, const AttentionKernel& attention);
int64_t cuda_prefill_threads(const Kernel& kernel, const AttentionKernel& attention);
// "f16" or "bf16": the type of whatever of the cache, the queries and the result is of 16 bits.
std::string_view cuda_narrow_name(const Kernel& kernel, const AttentionKernel& attention);
// Defines assay_prefill, behind what cuda_attention.cc defines: HEADS, KV_HEADS, HEAD_DIM, GROUP,
// the buffers' numbers, SCALE, SMALLEST, cache_t, widen_value() and sizes_of().
std::string cuda_prefill_text(const Kernel& kernel, const AttentionKernel& attention);

}  // namespace assay::engine
