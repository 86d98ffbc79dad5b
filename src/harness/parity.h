// Parity: an arm's greedy tokens against the baseline arm's, on the same prompts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend/worker_client.h"
#include "base/json.h"

namespace assay {

// Of every prompt of a scenario, [prompt * batch + row].
struct ParityTokens {
  std::vector<std::vector<int32_t>> rows;  // greedy tokens, [new_tokens] each
  std::vector<Json> logit_stats;           // as the worker reports them; empty: it doesn't
};
using ParityAnswer = ClientResult<ParityTokens>;

// In fp16 and bf16 two orders of the same sums choose different tokens where the first few logits
// are close. A difference is a tie, and ends its sequence without failing it, if the baseline's own
// logit of the token found is within this many roundings of that of the token it chose.
inline constexpr double kTieRoundings = 16;

// parity.json of a cell:
//   passed            true if every token agrees, up to ties; false if one doesn't or the arm gave
//                     no answer; null if nothing can be said: the baseline gave none, or the arm
//                     could not be asked
//   baseline_arm      its name
//   compared_tokens   how many were held against the baseline's
//   first_difference  null, or {sequence, position, expected, found}: found is null where the arm's
//                     sequence ended too early
//   error             null, or {arm, class, message} of the answer that is missing, and why
//   ties              only where there are any: [{sequence, position, found, margin, tolerance}]
//   logit_stats       only where workers report them: {NAME: [...]} of the arm and of the baseline
Json compare_parity(const std::string& arm, const ParityAnswer& answer,
                    const std::string& baseline_arm, const ParityAnswer& baseline);

// Of an arm that is not asked: passed is null, `why` the error.
Json unasked_parity(const std::string& arm, const std::string& baseline_arm,
                    const WorkerFailure& why);

}  // namespace assay
