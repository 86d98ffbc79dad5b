// Parity: an arm's greedy tokens against those of the arm with which it is compared, on the same
// prompts. That arm (study/study_quality.h, parity_reference()) is called the baseline here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "artifact/parity_cost.h"
#include "backend/worker_client.h"
#include "base/records/json.h"

namespace assay {

// Tokens for every prompt of a scenario, [prompt * batch + row].
struct ParityTokens {
  std::vector<std::vector<int32_t>> rows;  // greedy tokens, [new_tokens] each
  std::vector<Json> logit_stats;           // as the worker reports them; empty: it doesn't
  std::vector<int32_t> ends = {};          // ids with which a row may end before [new_tokens]
  std::optional<ParityCost> cost = {};
};
using ParityAnswer = ClientResult<ParityTokens>;

// In fp16 and bf16, and with weights in blocks, two orders of the same sums choose different tokens
// where the first few logits are close. A difference is a tie, and ends its sequence without
// failing it, if the baseline's own logit of the token found is within this many roundings of that
// of the token it chose.
inline constexpr double kTieRoundings = 16;

// A cell of n new tokens, in any phase, makes n + 1 a sequence: the one that the prefill leads to
// and one a decode step. (kv_decode's first comes of its untimed prefill: if that differs, its
// steps are about another text.) A prefill makes one.
inline int64_t generated_tokens(int64_t new_tokens) {
  return new_tokens + 1;
}

// parity.json of a cell, about the tokens that the cell generates and no later ones:
//   passed            true if every token agrees, up to ties and ends; false if one doesn't or the
//                     arm gave no answer; null if nothing can be said: the baseline gave none, the
//                     arm could not be asked, or neither gave a token
//   baseline_arm      its name
//   generated_tokens  of each sequence: as many as there were to compare
//   compared_tokens   of all sequences, held against the baseline's: fewer than there were if one
//                     ends at a difference, a tie or an id that ends texts
//   first_difference  null, or {sequence, position, expected, found}: found is null if the arm's
//                     sequence ended too early
//   error             null, or {arm, class, message} of the answer that is missing, and why
//   cost              only if the arm answered: artifact/parity_cost.h
//   ended             only if there are any: [{sequence, position, token}] of sequences in which
//                     both arms chose an id that ends the texts of one of them, before the last
//                     token; later ones aren't compared
//   ties              only if there are any: [{sequence, position, found, margin, tolerance}]
//   logit_stats       only if workers report them: {NAME: [...]} of the arm and of the baseline;
//                     lists of `steps` no longer than generated_tokens
// The answers may be longer: the first `generated` tokens of each sequence count.
Json compare_parity(const std::string& arm, const ParityAnswer& answer,
                    const std::string& baseline_arm, const ParityAnswer& baseline,
                    int64_t generated);

// parity.json for an arm that is not asked, or has no tokens to show: passed is null, `why` the
// error.
Json unasked_parity(const std::string& arm, const std::string& baseline_arm,
                    const WorkerFailure& why, int64_t generated);

}  // namespace assay
