// Prompts of different lengths side by side.
#include <algorithm>

#include "engine/session/session.h"

namespace assay::engine {

PromptBatch PromptBatch::of(const std::vector<std::vector<int32_t>>& prompts, int64_t pad_to) {
  PromptBatch batch;
  batch.batch = static_cast<int64_t>(prompts.size());
  batch.padded_len = pad_to;
  for (const auto& prompt : prompts) {
    batch.padded_len = std::max(batch.padded_len, static_cast<int64_t>(prompt.size()));
  }
  for (const auto& prompt : prompts) {
    const int64_t pad = batch.padded_len - static_cast<int64_t>(prompt.size());
    batch.pad.push_back(static_cast<int32_t>(pad));
    batch.ids.insert(batch.ids.end(), static_cast<size_t>(pad), 0);
    batch.ids.insert(batch.ids.end(), prompt.begin(), prompt.end());
  }
  return batch;
}

PromptBatch PromptBatch::padded_by(int64_t more) const {
  PromptBatch padded{.batch = batch, .padded_len = padded_len + more, .ids = {}, .pad = {}};
  for (int64_t row = 0; row < batch; ++row) {
    padded.ids.insert(padded.ids.end(), static_cast<size_t>(more), 0);
    const auto first = ids.begin() + row * padded_len;
    padded.ids.insert(padded.ids.end(), first, first + padded_len);
    padded.pad.push_back(pad[static_cast<size_t>(row)] + static_cast<int32_t>(more));
  }
  return padded;
}

}  // namespace assay::engine
