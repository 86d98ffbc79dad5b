// The timed regions of the three phases, as shared by every arm of the native engine.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "backend/message.h"
#include "base/result.h"
#include "engine/session/session.h"

namespace assay {

// One repetition of one phase. Everything that isn't the phase happens before the first clock read
// of run() or after its last: allocation of the output, the prefill that feeds kv_decode.
class TimedPhase {
 public:
  // The session is prepared for the shape; session and prompts outlive this.
  TimedPhase(engine::Session& session, const WireShape& shape, const engine::PromptBatch& prompts);

  // prefill: one forward pass over the prompt. kv_decode: new_tokens decode steps after an untimed
  // prefill. e2e_kv: both in one region.
  Status run();

  int64_t latency_ns() const { return end_ns_ - start_ns_; }
  std::optional<int64_t> ttft_ns() const;  // e2e_kv: until the first token is known
  // [batch, n]: prefill: the one token that each row's prompt leads to; else the new_tokens that
  // the decode steps produced.
  const std::vector<int32_t>& output() const { return output_; }
  // What the region must at least have read: each pass the weights, each decode step the cache too.
  uint64_t read_bytes() const;

 private:
  Status run_prefill();
  Status run_decode();
  Status run_both();
  Status decode_steps();
  void keep_decoded_tokens();

  engine::Session& session_;
  const WireShape& shape_;
  const engine::PromptBatch& prompts_;
  int64_t start_ns_ = 0;
  int64_t first_token_ns_ = 0;
  int64_t end_ns_ = 0;
  std::vector<int32_t> steps_;  // [new_tokens, batch]
  std::vector<int32_t> output_;
};

// The prefill's token and those of the decode steps after it: new_tokens a row. [batch][new_tokens]
Result<std::vector<std::vector<int32_t>>> greedy_tokens(engine::Session& session,
                                                        const engine::PromptBatch& prompts,
                                                        int64_t new_tokens);

}  // namespace assay
