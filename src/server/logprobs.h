// Probabilities of tokens from a model's logits.
#pragma once

#include <cstdint>
#include <span>

#include "server/generation.h"

namespace assay::server {

// Logarithms of the probabilities of the token `id` and of so many of the likeliest ones, among
// equal ones those of smaller ids first. `logits` [vocab] are finite or minus infinity; -9999
// stands for minus infinity, which JSON hasn't.
TokenLogprobs token_logprobs(std::span<const float> logits, int32_t id, int64_t likeliest);

}  // namespace assay::server
