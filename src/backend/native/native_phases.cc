// Clock reads around calls of the session; greedy tokens feed the next step from the session's own
// buffer.
#include "backend/native/native_phases.h"

#include <algorithm>

#include "base/clock.h"

namespace assay {

using engine::PromptBatch;
using engine::Session;

TimedPhase::TimedPhase(Session& session, const WireShape& shape, const PromptBatch& prompts)
    : session_(session), shape_(shape), prompts_(prompts) {
  // Touched here, so that no page fault falls into the region.
  steps_.assign(static_cast<size_t>(shape.batch * shape.new_tokens), -1);
}

Status TimedPhase::run() {
  switch (shape_.phase) {
    case WirePhase::kPrefill:
      return run_prefill();
    case WirePhase::kKvDecode:
      return run_decode();
    case WirePhase::kE2eKv:
      return run_both();
  }
  return {};
}

Status TimedPhase::run_prefill() {
  start_ns_ = monotonic_now_ns();
  const Status status = session_.prefill(prompts_);
  end_ns_ = monotonic_now_ns();
  ASSAY_CHECK(status);
  const auto tokens = session_.next_tokens();
  output_.assign(tokens.begin(), tokens.end());
  return {};
}

Status TimedPhase::run_decode() {
  ASSAY_CHECK(session_.prefill(prompts_));
  start_ns_ = monotonic_now_ns();
  const Status status = decode_steps();
  end_ns_ = monotonic_now_ns();
  ASSAY_CHECK(status);
  keep_decoded_tokens();
  return {};
}

Status TimedPhase::run_both() {
  start_ns_ = monotonic_now_ns();
  Status status = session_.prefill(prompts_);
  first_token_ns_ = monotonic_now_ns();
  if (status) status = decode_steps();
  end_ns_ = monotonic_now_ns();
  ASSAY_CHECK(status);
  keep_decoded_tokens();
  return {};
}

Status TimedPhase::decode_steps() {
  int32_t* out = steps_.data();
  for (int64_t step = 0; step < shape_.new_tokens; ++step) {
    ASSAY_CHECK(session_.decode(session_.next_tokens()));
    out = std::ranges::copy(session_.next_tokens(), out).out;
  }
  return {};
}

// From step after step to row after row of the batch.
void TimedPhase::keep_decoded_tokens() {
  output_.reserve(steps_.size());
  for (int64_t row = 0; row < shape_.batch; ++row) {
    for (int64_t step = 0; step < shape_.new_tokens; ++step) {
      output_.push_back(steps_[static_cast<size_t>(step * shape_.batch + row)]);
    }
  }
}

std::optional<int64_t> TimedPhase::ttft_ns() const {
  if (shape_.phase != WirePhase::kE2eKv) return std::nullopt;
  return first_token_ns_ - start_ns_;
}

uint64_t TimedPhase::read_bytes() const {
  uint64_t bytes = 0;
  if (shape_.phase != WirePhase::kKvDecode) bytes += session_.step_bytes(shape_.batch, 0);
  for (int64_t step = 1; step <= shape_.new_tokens; ++step) {
    bytes += session_.step_bytes(shape_.batch, prompts_.padded_len + step);
  }
  return bytes;
}

Result<std::vector<std::vector<int32_t>>> greedy_tokens(Session& session,
                                                        const PromptBatch& prompts,
                                                        int64_t new_tokens) {
  std::vector<std::vector<int32_t>> rows(static_cast<size_t>(prompts.batch));
  ASSAY_CHECK(session.prefill(prompts));
  for (int64_t step = 0; step < new_tokens; ++step) {
    if (step > 0) ASSAY_CHECK(session.decode(session.next_tokens()));
    const auto tokens = session.next_tokens();
    for (size_t row = 0; row < rows.size(); ++row) rows[row].push_back(tokens[row]);
  }
  return rows;
}

}  // namespace assay
