// Bytes of a phase, and untimed generation for parity.
#include "backend/native/native_phases.h"

#include <algorithm>

#include "engine/codegen/kernel.h"

namespace assay {

using engine::PromptBatch;
using engine::Session;

uint64_t phase_read_bytes(const Session& session, const WireShape& shape, int64_t padded_len) {
  uint64_t bytes = 0;
  if (shape.phase != Phase::kKvDecode) bytes += session.model().step_bytes(shape.batch, 0);
  for (int64_t step = 1; step <= shape.new_tokens; ++step) {
    bytes += session.model().step_bytes(shape.batch, padded_len + step);
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

Result<Json> measure_fp8_error(engine::Session& session, const engine::PromptBatch& prompts) {
  constexpr int64_t kMostTokens = 256;
  const int64_t padding = prompts.batch == 0 ? 0 : prompts.pad.front();
  const int64_t tokens = std::min(prompts.padded_len - padding, kMostTokens);
  if (tokens <= engine::kProductRows) {
    return Json{{"problem", fmt::format("prompts: expected more than {} tokens for products in "
                                        "fp8, found {}",
                                        engine::kProductRows, tokens)}};
  }
  const auto first = prompts.ids.begin() + padding;
  const auto row = engine::PromptBatch::of({std::vector<int32_t>(first, first + tokens)});
  ASSAY_TRY(const engine::LogitsError error, session.fp8_error(row));
  return Json{{"reference", fmt::format("the same weights in {}, eager",
                                        engine::dtype_name(session.model().dtype()))},
              {"positions", error.positions},
              {"kl_mean", error.kl_mean},
              {"kl_most", error.kl_most},
              {"nll_reference_mean", error.nll_mean},
              {"nll_change_mean", error.nll_change_mean},
              {"nll_distance_mean", error.nll_distance_mean},
              {"same_choice", error.same_choice}};
}

}  // namespace assay
