// The distance by which a stream of reads prefetches.
#pragma once

#include <cstddef>

namespace assay::engine {

// A core fills its miss buffers with four streams that prefetch so far ahead each. On a virtual
// Intel Xeon (AVX-512, AMX) with neighbours, decode of gpt2-25m with two kilobytes takes 0.90 in
// fp32 and 0.95 in bf16 of its time with one, and no less with four (`compare --run`, 640 pairs in
// 8 rounds, 2026-11-25).
inline constexpr size_t kReadAheadBytes = 2048;

}  // namespace assay::engine
