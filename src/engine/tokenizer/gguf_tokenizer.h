// The tokenizer in a GGUF file's metadata: tokens, merges or scores, and the name of the rules that
// cut text into words.
#pragma once

#include <string_view>

#include "base/result.h"
#include "engine/model/gguf.h"
#include "engine/tokenizer/tokenizer_file.h"

namespace assay::engine {

// tokenizer.ggml.model "gpt2" with one of the pre-tokenisers gpt-2, llama-bpe, qwen2 and smollm, or
// "llama", which is SentencePiece's BPE: there the pair of the highest score is merged first, and
// of equal ones the leftmost. Control tokens are special, and they and the user's tokens are cut
// out of the text first. The rules of words are those of the families' tokenizer.json, Qwen2's NFC
// among them, which llama.cpp leaves out. bad_input: another kind, which is named.
Result<TokenizerFile> read_gguf_tokenizer(const Gguf& file, std::string_view object);

}  // namespace assay::engine
