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
  require(streamed == assay::engine::repair_utf8(tokenizer.decode(*ids, true)));
}

void parse(std::string_view json) {
  const auto tokenizer = Tokenizer::parse(json, "fuzz");
  if (tokenizer) use(*tokenizer, kText);
}

// SentencePiece's stages, old and new, with a few of the byte tokens.
constexpr std::string_view kSentencePiece = R"({"added_tokens":[
{"id":0,"content":"<unk>","special":true},{"id":1,"content":"<s>","special":true,"normalized":true}],
"normalizer":{"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"Prepend","prepend":"_"},
{"type":"Replace","pattern":{"String":" "},"content":"_"}]},
"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Digits","individual_digits":true},
{"type":"Metaspace","replacement":"_","prepend_scheme":"first","split":true}]},
"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>"}},
{"Sequence":{"id":"A"}}],"special_tokens":{"<s>":{"ids":[1]}}},
"decoder":{"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"_"},"content":" "},
{"type":"ByteFallback"},{"type":"Metaspace","replacement":"_"},{"type":"Fuse"},
{"type":"Strip","content":" ","start":1,"stop":0}]},
"model":{"type":"BPE","unk_token":"<unk>","fuse_unk":true,"byte_fallback":true,"ignore_merges":true,
"vocab":{"<unk>":0,"<s>":1,"<0xC3>":2,"<0xA9>":3,"<0xEF>":4,"<0xBF>":5,"<0xBD>":6,"<0x0A>":7,
"_":8,"e":9,"n":10,"d":11,"en":12,"_en":13,"t":14},"merges":[["e","n"],["_","en"]]}})";

std::string small_file(uint8_t choice) {
  if (choice % 4 == 3) return std::string(kSentencePiece);
  return assay::engine::make_tokenizer_json(262, static_cast<TokenizerStyle>(choice % 4));
}

// A sound file with the input written over a part of it, or put into it.
void parse_spliced(std::string_view input, bool insert) {
  if (input.size() < 3) return;
  std::string json = small_file(static_cast<uint8_t>(input[0]));
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
    made->push_back(std::move(*Tokenizer::parse(kSentencePiece, "made")));
    return made;
  }();
  for (const Tokenizer& tokenizer : *tokenizers) use(tokenizer, text);
  // Without normalisation every byte comes back, except the malformed ones.
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
