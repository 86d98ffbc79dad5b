// Sizes that a batch's runs are widened to where a device prefers few of them.
#pragma once

#include <bit>
#include <cstdint>

namespace assay::engine {

inline constexpr int64_t kMostPrompts = 8;   // of a run
inline constexpr int64_t kFewestTokens = 8;  // of a row of a run

// The next of 1, 2, 3, 4, 6, 8, 12, 16, 24 ...
inline int64_t wider(int64_t count) {
  const auto power = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(count)));
  return count <= power / 4 * 3 ? power / 4 * 3 : power;
}

inline int64_t power_of_two(int64_t count) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(count)));
}

// Rows of a step: kernels for few rows take 2, 4, 8 or 16.
inline int64_t wider_step(int64_t rows) {
  constexpr int64_t kFew = 16;
  return rows <= kFew ? power_of_two(rows) : wider(rows);
}

}  // namespace assay::engine
