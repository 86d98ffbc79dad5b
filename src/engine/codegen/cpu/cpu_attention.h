// Attention on the CPU as a source template: few queries over a long cache, split over positions
// where heads are too few for the threads, and blocks of queries in prefill.
#pragma once

#include <cstdint>
#include <string>

#include "engine/codegen/kernel.h"

namespace assay::engine {

// The translation unit of an AttentionKernel; exports assay_run.
std::string cpu_attention_source(const Kernel& kernel);

// kernel_scratch_floats() and kernel_shared_floats() for attention.
int64_t attention_scratch_floats(const AttentionKernel& kernel, const DimValues& dims);
int64_t attention_shared_floats(const AttentionKernel& kernel, const DimValues& dims,
                                int64_t threads);

}  // namespace assay::engine
