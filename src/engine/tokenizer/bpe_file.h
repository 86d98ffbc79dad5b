// The "model" of a tokenizer.json: vocabulary and merges.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/records/json.h"
#include "base/result.h"
#include "engine/tokenizer/bpe.h"

namespace assay::engine {

using Vocabulary = std::unordered_map<std::string, int32_t>;  // by the token's text in the file

// A tokenizer.json with model.vocab taken out of the document, whose objects are too slow for it.
struct TokenizerDocument {
  Json json;
  Vocabulary vocabulary;
};

// Ids must be unique and not negative; `object` names the file in errors.
Result<TokenizerDocument> parse_tokenizer_document(std::string_view text, std::string_view object);

// Reads document.json["model"]. Another type than BPE, or an option of it that isn't supported, is
// an error that names it.
Result<BytePairEncoder::Model> read_bpe_model(const TokenizerDocument& document,
                                              std::string_view object);

}  // namespace assay::engine
