// The native worker's work with a session beside the timed regions.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/message.h"
#include "base/records/json.h"
#include "base/result.h"
#include "engine/session/session.h"

namespace assay {

// Least bytes that a phase's region must have read: each pass the weights, each decode step the
// cache.
uint64_t phase_read_bytes(const engine::Session& session, const WireShape& shape,
                          int64_t padded_len);

// Distance of the session's logits, whose products are in fp8, from those without, on the first row
// of these prompts: "kl", "nll" and what they are of. {"problem"}: too few tokens for any product
// in fp8.
Result<Json> measure_fp8_error(engine::Session& session, const engine::PromptBatch& prompts);

// The prefill's token and those of the decode steps after it: new_tokens a row. Products with
// weights in blocks round x, so with these the logits of each choice too, which show a tie.
Result<ParityReply> greedy_tokens(engine::Session& session, const engine::PromptBatch& prompts,
                                  int64_t new_tokens);

}  // namespace assay
