// Hostile tokenizer.json files and metadata of GGUF files, and hostile text through sound ones. Ids
// are those of an accepted file, the same each time, and their text streams as a whole.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/model/gguf_writer.h"
#include "engine/tokenizer/byte_alphabet.h"
#include "engine/tokenizer/gguf_tokenizer.h"
#include "engine/tokenizer/make.h"
#include "engine/tokenizer/tokenizer.h"
#include "engine/tokenizer/unicode.h"

namespace {

using assay::engine::Tokenizer;
using assay::engine::TokenizerStyle;

constexpr std::string_view kText = "It's 12345  \u00e9\u0301 <|endoftext|>\n\n\xff end   ";

void require(bool holds, std::source_location at = std::source_location::current()) {
  if (holds) return;
  fmt::print(stderr, "line {} doesn't hold\n", at.line());
  std::abort();
}

void require_one_line(const assay::Error& error) {
  require(!error.message.empty() && error.message.find('\n') == std::string::npos);
}

// The pieces are text, and together they are the whole.
std::string streamed(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  assay::engine::TokenStream stream(tokenizer);
  std::string text;
  const auto take = [&](const std::string& piece) {
    require(assay::engine::repair_utf8(piece) == piece);
    text += piece;
  };
  for (const int32_t id : ids) take(stream.push(id));
  take(stream.finish());
  require(text == assay::engine::repair_utf8(tokenizer.decode(ids, true)));
  return text;
}

// `ids` are `plain` with a part of `ends` before it and the rest behind.
bool stands_between(const std::vector<int32_t>& plain, const std::vector<int32_t>& ends,
                    const std::vector<int32_t>& ids) {
  for (size_t before = 0; before <= ends.size(); ++before) {
    std::vector<int32_t> expected = ends;
    expected.insert(expected.begin() + static_cast<std::ptrdiff_t>(before), plain.begin(),
                    plain.end());
    if (expected == ids) return true;
  }
  return false;
}

void use(const Tokenizer& tokenizer, const Tokenizer& same, std::string_view text) {
  const auto ids = tokenizer.encode(text, true), again = same.encode(text, true);
  require(ids.has_value() == again.has_value());
  if (!ids) return require_one_line(ids.error());
  require(*ids == *again);
  for (const int32_t id : *ids) require(id >= 0 && id < tokenizer.vocab_size());
  const auto plain = tokenizer.encode(text, false);
  const auto ends = tokenizer.encode("", true), none = tokenizer.encode("", false);
  require(plain && ends && none && none->empty() && stands_between(*plain, *ends, *ids));
  require(streamed(tokenizer, *ids) == streamed(same, *ids));
  require(tokenizer.decode(*ids, false) == same.decode(*ids, false));
  // Any ids, among them some that no token has.
  std::vector<int32_t> any;
  for (const char c : text) any.push_back(static_cast<signed char>(c) + (any.size() % 2 ? 128 : 0));
  streamed(tokenizer, any);
}

void parse(std::string_view json) {
  const auto tokenizer = Tokenizer::parse(json, "fuzz"), same = Tokenizer::parse(json, "fuzz");
  require(tokenizer.has_value() == same.has_value());
  if (!tokenizer) return require_one_line(tokenizer.error());
  use(*tokenizer, *same, kText);
}

std::optional<Tokenizer> read_gguf(std::string_view bytes) {
  const auto file =
      assay::engine::Gguf::parse(std::as_bytes(std::span(bytes.data(), bytes.size())), "fuzz");
  if (!file) {
    require_one_line(file.error());
    return std::nullopt;
  }
  auto read = assay::engine::read_gguf_tokenizer(*file, "fuzz");
  if (read) return Tokenizer::of(std::move(*read));
  require_one_line(read.error());
  return std::nullopt;
}

// A GGUF file with a token for each byte, and after them those that the input's first line names;
// the rest is text. The first bytes choose what else the file says.
void gguf(std::string_view input) {
  if (input.size() < 3) return;
  const auto choice = static_cast<uint8_t>(input[0]), types = static_cast<uint8_t>(input[1]);
  const bool in_pieces = choice % 2 == 1;
  const std::string_view tail = input.substr(2);
  const size_t line = std::min(tail.find('\n'), tail.size());
  const std::string_view names = tail.substr(0, line);
  const std::string_view text = line < tail.size() ? tail.substr(line + 1) : kText;

  std::vector<std::string> tokens, merges;
  for (unsigned byte = 0; byte < 256; ++byte) {
    tokens.push_back(in_pieces ? fmt::format("<0x{:02X}>", byte)
                               : assay::engine::byte_symbol(static_cast<uint8_t>(byte)));
  }
  if (in_pieces) tokens.emplace_back("\u2581");  // else a space comes back as its bytes
  const size_t sound = tokens.size();
  std::vector<float> scores(sound, 0);
  for (size_t at = 0; at < names.size();) {
    const size_t end = std::min(names.find('\t', at), names.size());
    const std::string_view name = names.substr(at, end - at);
    at = end + 1;
    if (name.empty()) continue;
    if (in_pieces) {
      tokens.emplace_back(name);
    } else if (name.size() > 1) {  // two tokens, of which others may be made
      const size_t cut = static_cast<uint8_t>(name[0]) % (name.size() - 1) + 1;
      const std::string left = assay::engine::symbols_of_bytes(name.substr(0, cut));
      const std::string right = assay::engine::symbols_of_bytes(name.substr(cut));
      for (const std::string& token : {left, right, left + right}) tokens.push_back(token);
      merges.push_back(left + " " + right);
    }
    while (scores.size() < tokens.size()) scores.push_back(static_cast<float>(name.size() % 5));
  }
  std::vector<int32_t> kinds(tokens.size(), 1);
  for (size_t i = sound; i < kinds.size(); ++i) kinds[i] = types == 0 ? 1 : types >> i % 7 & 7;

  assay::engine::GgufHeader header;
  constexpr std::array<const char*, 4> kRules = {"gpt-2", "llama-bpe", "qwen2", "smollm"};
  const size_t rules = choice / 2 % 4;
  const bool with_prefix = choice / 8 % 2 == 1;
  header.add("tokenizer.ggml.model", in_pieces ? "llama" : "gpt2");
  header.add("tokenizer.ggml.pre", kRules[rules]);
  header.add("tokenizer.ggml.tokens", std::span<const std::string>(tokens));
  header.add("tokenizer.ggml.token_type", std::span<const int32_t>(kinds));
  header.add("tokenizer.ggml.scores", std::span<const float>(scores));
  header.add("tokenizer.ggml.merges", std::span<const std::string>(merges));
  header.add("tokenizer.ggml.bos_token_id", uint32_t{types});
  header.add("tokenizer.ggml.eos_token_id", uint32_t{choice});
  header.add("tokenizer.ggml.add_eos_token", choice / 16 % 2 == 1);
  header.add("tokenizer.ggml.add_space_prefix", with_prefix);
  const std::string bytes = header.finish();
  const auto tokenizer = read_gguf(bytes), same = read_gguf(bytes);
  require(tokenizer && same);
  use(*tokenizer, *same, text);
  // With plain tokens alone, and where nothing is normalised, the text comes back. (Pieces may
  // spell a byte token, and U+2581 stands for a space.)
  const bool comes_back = in_pieces ? input.find("<0x") == std::string_view::npos &&
                                          input.find("\u2581") == std::string_view::npos
                                    : rules != 2;
  if (types != 0 || !comes_back) return;
  const auto ids = tokenizer->encode(text, false);
  require(ids && tokenizer->decode(*ids, false) == assay::engine::repair_utf8(text));
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
  for (const Tokenizer& tokenizer : *tokenizers) use(tokenizer, tokenizer, text);
  // Every byte comes back, except the malformed ones; Qwen2's are normalised, between added tokens.
  const std::string valid = assay::engine::repair_utf8(text);
  const auto back = [&](size_t i) {
    const auto ids = (*tokenizers)[i].encode(text, false);
    require(ids.has_value());
    return (*tokenizers)[i].decode(*ids, false);
  };
  require(back(0) == valid && back(1) == valid);
  if (text.find("<|") == std::string_view::npos) {
    require(back(2) == assay::engine::normalize_nfc(valid));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 8) {
    case 0:
      parse(input);
      break;
    case 1:
      parse_spliced(input, true);
      break;
    case 2:
      parse_spliced(input, false);
      break;
    case 3:
      gguf(input);
      break;
    case 4:
      if (const auto tokenizer = read_gguf(input)) use(*tokenizer, *tokenizer, kText);
      break;
    default:
      encode(input);
      break;
  }
  return 0;
}
