// Floats into blocks: the other way of decode(), for writing models.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/weight_format.h"

namespace assay::engine {

// The largest magnitude of a value that every scale of a block can stand for.
inline constexpr float kMostEncoded = 65504;  // of fp16

// True for formats that encode() writes: elements, and blocks that GGUF has.
bool can_encode(WeightFormat format);

// `count` values, whole blocks, finite and at most kMostEncoded large. Where there is a choice of
// codes (q4_k, q5_k, q6_k) each group's scale, and its minimum, are those of the least squared
// error among some tries, in which large values weigh more. The same values give the same bytes on
// every processor.
void encode(WeightFormat format, const float* values, int64_t count, std::byte* out);

}  // namespace assay::engine
