// A made-up tokenizer for a random checkpoint: right vocabulary size, right pre-tokeniser, no
// training.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace assay::engine {

enum class TokenizerStyle { kGpt2, kLlama3, kQwen2 };

// The text of a tokenizer.json of exactly vocab_size tokens (added ones included), the same on
// every machine: the byte alphabet, merges that spell common English words, then merges that spell
// made-up ones, then the style's special tokens. If vocab_size has no room for all bytes, letters
// come first and the missing bytes encode as the end-of-text token. vocab_size from 8 on (assert).
std::string make_tokenizer_json(int64_t vocab_size, TokenizerStyle style);

// Ids that a config.json beside it should name. At the real vocabulary sizes (50257, 128256,
// 151936) they are the real models' ids.
struct SpecialTokenIds {
  std::optional<int64_t> bos;
  int64_t eos = 0;
};
SpecialTokenIds special_token_ids(int64_t vocab_size, TokenizerStyle style);

}  // namespace assay::engine
