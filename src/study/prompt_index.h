// The prompt of its scenario that a repetition has.
#pragma once

#include <cstddef>
#include <cstdint>

namespace assay {

// They take turns, also in warm-ups, the last of which (repetition -1) has the last prompt.
constexpr size_t prompt_index(int64_t repetition, size_t prompts) {
  const auto count = static_cast<int64_t>(prompts);
  return static_cast<size_t>(((repetition % count) + count) % count);
}

}  // namespace assay
