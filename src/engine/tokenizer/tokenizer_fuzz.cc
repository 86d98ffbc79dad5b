// Hostile tokenizer.json files, and hostile text through sound ones.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tokenizer/make.h"
#include "engine/tokenizer/tokenizer.h"
#include "engine/tokenizer/unicode.h"

namespace {

using assay::engine::Tokenizer;
using assay::engine::TokenizerStyle;

constexpr std::string_view kText = "It's 12345  \u00e9\u0301 <|endoftext|>\n\n\xff end   ";

void require(bool holds) {
  if (!holds) std::abort();
}

void use(const Tokenizer& tokenizer, std::string_view text) {
  const auto ids = tokenizer.encode(text, true);
  if (!ids) return;
  tokenizer.decode(*ids, false);
  assay::engine::TokenStream stream(tokenizer);
  std::string streamed;
  for (const int32_t id : *ids) streamed += stream.push(id);
  streamed += stream.finish();
  require(assay::engine::repair_utf8(streamed) == streamed);
}

void parse(std::string_view json) {
  const auto tokenizer = Tokenizer::parse(json, "fuzz");
  if (tokenizer) use(*tokenizer, kText);
}

std::string small_file(TokenizerStyle style) {
  return assay::engine::make_tokenizer_json(262, style);
}

// A sound file with the input written over a part of it, or put into it.
void parse_spliced(std::string_view input, bool insert) {
  if (input.size() < 3) return;
  std::string json = small_file(static_cast<TokenizerStyle>(static_cast<uint8_t>(input[0]) % 3));
  // The interesting members stand at the two ends, the vocabulary between them.
  const size_t place =
      (static_cast<uint8_t>(input[1]) << 8 | static_cast<uint8_t>(input[2])) % (json.size() + 1);
  const std::string_view text = input.substr(3);
  json.replace(place, insert ? 0 : text.size(), text);
  parse(json);
}

void encode(std::string_view text) {
  static const auto* tokenizers = [] {
    auto* made = new std::vector<Tokenizer>;
    for (const auto style :
         {TokenizerStyle::kGpt2, TokenizerStyle::kLlama3, TokenizerStyle::kQwen2}) {
      made->push_back(
          std::move(*Tokenizer::parse(assay::engine::make_tokenizer_json(2000, style), "made")));
    }
    return made;
  }();
  for (const Tokenizer& tokenizer : *tokenizers) use(tokenizer, text);
  // Without normalisation every byte comes back, but for the malformed ones.
  const auto ids = tokenizers->front().encode(text, false);
  require(ids && tokenizers->front().decode(*ids, false) == assay::engine::repair_utf8(text));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0:
      parse(input);
      break;
    case 1:
      parse_spliced(input, true);
      break;
    case 2:
      parse_spliced(input, false);
      break;
    default:
      encode(input);
      break;
  }
  return 0;
}
