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

}  // namespace assay::engine
