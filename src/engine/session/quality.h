// A model beside a reference on one text: both are fed what the text has, not what they chose.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/result.h"
#include "engine/session/logits_error.h"
#include "engine/session/session.h"

namespace assay::engine {

using TokenWindow = std::vector<int32_t>;

// `count` windows of `length` tokens, which the model draws by itself at temperature 1: each begins
// with `start`, and draws by the seed and its number alone. `progress` gets the tokens that each
// has.
Result<std::vector<TokenWindow>> draw_windows(Session& model, int32_t start, int64_t count,
                                              int64_t length, uint64_t seed,
                                              const std::function<void(int64_t)>& progress);

// Errors of each window's positions from `first` on: one fewer than its tokens, since the last one
// predicts nothing of it. Windows have one length, more than first + 1. bad_input: the vocabularies
// differ in size, an id is outside of them, or a window is longer than a model's positions.
// `progress` gets the number of windows that are done.
Result<std::vector<std::vector<PositionError>>> teacher_forced(
    Session& reference, Session& model, std::span<const TokenWindow> windows, int64_t first,
    const std::function<void(int64_t)>& progress);

}  // namespace assay::engine
