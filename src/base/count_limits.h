// The largest whole numbers that are believed of measured rows: sums and products of them stay
// within 64 bits.
#pragma once

#include <cstdint>

namespace assay {

// Of tokens of a prompt, asked for or produced, and of a batch.
inline constexpr int64_t kMostTokensOfACall = 1'000'000'000;

// Of what a repetition added to a counter, and of a number by which a row is told: its process,
// block, repetition and place.
inline constexpr int64_t kMostCounted = 1'000'000'000'000'000;

}  // namespace assay
