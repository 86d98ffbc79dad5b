// A tokenizer.json, validated: every stage of the pipeline that the file describes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "engine/tokenizer/added_tokens.h"
#include "engine/tokenizer/bpe.h"
#include "engine/tokenizer/stages/decoder.h"
#include "engine/tokenizer/stages/normalizer.h"
#include "engine/tokenizer/stages/pre_tokenizer.h"

namespace assay::engine {

struct TokenText {
  std::string text;  // as the file has it, for the decoder
  bool special = false;
};

struct TokenizerFile {
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  BytePairEncoder::Model model;
  Decoder decoder;
  std::vector<AddedToken> added;                  // contents normalised where the token asks for it
  std::unordered_map<int32_t, TokenText> tokens;  // by id, the added ones too
  std::vector<int32_t> prefix;                    // special tokens around every text
  std::vector<int32_t> suffix;
};

// Truncation and padding of the file are ignored, as transformers does: they belong to a call.
Result<TokenizerFile> read_tokenizer_file(std::string_view text, std::string_view object);

}  // namespace assay::engine
