// Why two executors chose other tokens: what their logits say where the first one differs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/session/session.h"

namespace assay::bench {

// A greedy generation: tokens [steps, batch], and the logits [batch, vocab] that chose each step's.
struct Generated {
  std::vector<int32_t> tokens;
  std::vector<std::vector<float>> logits;
};

// The logits that chose `tokens` [steps, batch]: prompts are filled in anew, and each step is fed
// with its tokens. No more than `most_steps` of them.
Result<std::vector<std::vector<float>>> logits_behind(engine::Session& session,
                                                      const engine::PromptBatch& prompts,
                                                      const std::vector<int32_t>& tokens,
                                                      size_t most_steps);

// The index of the first token that differs; of equal ones their number.
size_t first_difference(const std::vector<int32_t>& a, const std::vector<int32_t>& b);

// At that token, of its row, in a sentence: how far apart the best two logits of `eager` are, how
// far `compiled`'s logits are from them, and how far `exact`'s are from both. `compiled` and
// `exact` are logits behind that token, fed with eager's before it: rounding alone leaves all three
// about as far from each other, and the best two closer than that.
std::string describe_difference(const Generated& eager, const std::vector<int32_t>& tokens,
                                const std::vector<float>& compiled, const std::vector<float>& exact,
                                int64_t batch);

}  // namespace assay::bench
