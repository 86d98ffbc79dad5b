// The largest whole numbers that are believed of measured rows: sums and products of them stay
// within 64 bits.
#pragma once

#include <cstdint>

namespace assay {

// Most tokens of a prompt, asked for or produced, and largest batch.
inline constexpr int64_t kMostTokensOfACall = 1'000'000'000;

// Most that a repetition adds to a counter, and the largest number that tells rows apart: a row's
// process, block, repetition and place.
inline constexpr int64_t kMostCounted = 1'000'000'000'000'000;

}  // namespace assay
