// The native worker's work with a session beside the timed regions.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/message.h"
#include "base/result.h"
#include "engine/session/session.h"

namespace assay {

// Least bytes that a phase's region must have read: each pass the weights, each decode step the
// cache.
uint64_t phase_read_bytes(const engine::Session& session, const WireShape& shape,
                          int64_t padded_len);

// The prefill's token and those of the decode steps after it: new_tokens a row. [batch][new_tokens]
Result<std::vector<std::vector<int32_t>>> greedy_tokens(engine::Session& session,
                                                        const engine::PromptBatch& prompts,
                                                        int64_t new_tokens);

}  // namespace assay
