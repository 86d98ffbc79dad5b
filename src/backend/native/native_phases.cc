// Bytes of a phase, and untimed generation for parity.
#include "backend/native/native_phases.h"

namespace assay {

using engine::PromptBatch;
using engine::Session;

uint64_t phase_read_bytes(const Session& session, const WireShape& shape, int64_t padded_len) {
  uint64_t bytes = 0;
  if (shape.phase != Phase::kKvDecode) bytes += session.step_bytes(shape.batch, 0);
  for (int64_t step = 1; step <= shape.new_tokens; ++step) {
    bytes += session.step_bytes(shape.batch, padded_len + step);
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
