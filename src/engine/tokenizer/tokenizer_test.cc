#include "engine/tokenizer/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "base/random.h"
#include "base/text/text.h"
#include "engine/model/gguf_writer.h"
#include "engine/tokenizer/gguf_tokenizer.h"
#include "engine/tokenizer/make.h"

namespace assay::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Tokenizer made(TokenizerStyle style, int64_t vocab_size = 600) {
  auto tokenizer = Tokenizer::parse(make_tokenizer_json(vocab_size, style), "made");
  EXPECT_TRUE(tokenizer) << tokenizer.error().message;
  return std::move(*tokenizer);
}

constexpr std::string_view kByteLevel = R"({"type": "ByteLevel", "add_prefix_space": false})";

// A file of the tokens a, b, c, ab, abc and Ġ, with one of its members replaced.
std::string file(std::string_view key, std::string_view value) {
  const auto member = [&](std::string_view name, std::string_view usual) {
    return fmt::format("\"{}\": {}", name, name == key ? value : usual);
  };
  const std::string model = join(
      std::array{member("type", "\"BPE\""), member("dropout", "null"), member("unk_token", "null"),
                 member("byte_fallback", "false"), member("continuing_subword_prefix", "\"\""),
                 member("vocab", R"({"a": 0, "b": 1, "c": 2, "ab": 3, "abc": 4, "Ġ": 5})"),
                 member("merges", R"(["a b", "ab c"])")},
      ", ");
  const std::string stages =
      join(std::array{member("added_tokens", "[]"), member("normalizer", "null"),
                      member("pre_tokenizer", kByteLevel), member("post_processor", "null"),
                      member("decoder", kByteLevel)},
           ", ");
  return fmt::format("{{{}, \"model\": {{{}}}}}", stages, model);
}

std::string decoders(std::string_view list) {
  return fmt::format(R"({{"type": "Sequence", "decoders": [{}]}})", list);
}

// Llama 2's in small: characters, with bytes to fall back on. é is two byte tokens.
constexpr std::string_view kSentencePiece = R"({
  "added_tokens": [{"id": 0, "content": "<unk>", "special": true},
                   {"id": 1, "content": "<s>", "special": true}],
  "normalizer": {"type": "Sequence", "normalizers": [
    {"type": "Prepend", "prepend": "▁"},
    {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]},
  "pre_tokenizer": null,
  "post_processor": {"type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}],
    "special_tokens": {"<s>": {"ids": [1]}}},
  "decoder": {"type": "Sequence", "decoders": [
    {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
    {"type": "ByteFallback"}, {"type": "Fuse"},
    {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
  "model": {"type": "BPE", "unk_token": "<unk>", "fuse_unk": true, "byte_fallback": true,
    "vocab": {"<unk>": 0, "<s>": 1, "<0xC3>": 2, "<0xA9>": 3, "▁": 4, "a": 5, "b": 6, "▁a": 7},
    "merges": ["▁ a"]}})";

std::vector<int32_t> encode(std::string_view json, std::string_view text) {
  const auto tokenizer = Tokenizer::parse(json, "test");
  EXPECT_TRUE(tokenizer) << tokenizer.error().message;
  return tokenizer->encode(text, true).value();
}

TEST(Tokenizer, MergesByRankInBothForms) {
  EXPECT_THAT(encode(file("", ""), "abcab c"), ElementsAre(4, 3, 5, 2));
  EXPECT_THAT(encode(file("merges", R"([["a","b"],["ab","c"]])"), "abc"), ElementsAre(4));
  EXPECT_THAT(encode(file("merges", R"(["#version: 0.2", "a b"])"), "abc"), ElementsAre(3, 2));
}

TEST(Tokenizer, PiecesOfAGgufBeginWithASpaceUnlessItSaysNo) {
  const std::vector<std::string> tokens = {"\u2581", "a", "b", "\u2581a"};
  for (const bool prefixed : {false, true}) {
    GgufHeader header;
    header.add("tokenizer.ggml.model", "llama");
    header.add("tokenizer.ggml.tokens", std::span<const std::string>(tokens));
    header.add("tokenizer.ggml.scores", std::span<const float>(std::vector<float>(4)));
    header.add("tokenizer.ggml.add_space_prefix", prefixed);
    const std::string bytes = header.finish();
    const auto file = Gguf::parse(std::as_bytes(std::span(bytes)), "test");
    ASSERT_TRUE(file) << file.error().message;
    auto read = read_gguf_tokenizer(*file, "test");
    ASSERT_TRUE(read) << read.error().message;
    const Tokenizer tokenizer = Tokenizer::of(std::move(*read));
    const auto ids = tokenizer.encode("ab a", false).value();
    EXPECT_EQ(ids, prefixed ? (std::vector{3, 2, 3}) : (std::vector{1, 2, 3}));
    EXPECT_EQ(tokenizer.decode(ids, false), "ab a");
  }
}

TEST(Tokenizer, UnknownBytesAreDroppedOrMarked) {
  EXPECT_THAT(encode(file("", ""), "axxb"), ElementsAre(3));
  EXPECT_THAT(encode(file("unk_token", "\"c\""), "axxb"), ElementsAre(0, 2, 2, 1));
}

TEST(Tokenizer, CharactersWithoutATokenFallBackOnBytes) {
  EXPECT_THAT(encode(kSentencePiece, "a b"), ElementsAre(1, 7, 4, 6));
  EXPECT_THAT(encode(kSentencePiece, "\u00e9"), ElementsAre(1, 4, 2, 3));
  // Neither an id of its own nor one for each byte: a run of them is one unknown token.
  EXPECT_THAT(encode(kSentencePiece, "xyb"), ElementsAre(1, 4, 0, 6));
  EXPECT_THAT(encode(kSentencePiece, "a<s>a"), ElementsAre(1, 7, 1, 7));
}

TEST(Tokenizer, MetaspaceMarksTheStart) {
  const auto ids = [](std::string_view scheme, std::string_view split, std::string_view text) {
    const std::string json =
        file("pre_tokenizer", fmt::format(R"({{"type": "Metaspace", "replacement": "Ġ",
                                          "prepend_scheme": "{}", "split": {}}})",
                                          scheme, split));
    return encode(json, text);
  };
  EXPECT_THAT(ids("always", "true", "ab b"), ElementsAre(5, 3, 5, 1));
  EXPECT_THAT(ids("first", "false", " ab"), ElementsAre(5, 3));
  EXPECT_THAT(ids("never", "false", "ab"), ElementsAre(3));
}

TEST(Tokenizer, DecodesRunsOfBytesAsAWhole) {
  const auto tokenizer = Tokenizer::parse(kSentencePiece, "test");
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_EQ(tokenizer->decode({1, 7, 4, 2, 3, 6}, true), "a \u00e9b");
  EXPECT_EQ(tokenizer->decode({4, 4, 5}, true), " a");
  // One byte too many, and none of the run is a character.
  EXPECT_EQ(tokenizer->decode({5, 2, 3, 3, 5}, true), "a\ufffd\ufffd\ufffda");
}

TEST(Tokenizer, AByteLevelDecoderOfTheWholeTextNeedsTokensOfItsAlphabet) {
  // transformers makes these decoders of a GGUF file. ByteLevel sees all tokens as one text, so
  // each of them has to be of its alphabet.
  const std::string list = R"({"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "ByteLevel"})";
  const auto tokenizer = Tokenizer::parse(file("decoder", decoders(list)), "test");
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_EQ(tokenizer->decode({0, 5, 4}, true), "a abc");
  for (const std::string_view token : {"two words", "<0x20>"}) {
    std::string json = file("decoder", decoders(list));
    json.replace(json.find("abc"), 3, token);
    json.replace(json.find(", \"ab c\""), 8, "");
    const auto refused = Tokenizer::parse(json, "test");
    ASSERT_FALSE(refused) << token;
    EXPECT_THAT(refused.error().message, HasSubstr(token));
  }
}

TEST(Tokenizer, ReplacementsThatExplodeAreRefused) {
  std::string steps;
  for (int i = 0; i < 40; ++i) {
    steps +=
        fmt::format(R"({}{{"type": "Replace", "pattern": {{"String": "a"}}, "content": "aa"}})",
                    i == 0 ? "" : ", ");
  }
  const std::string json =
      file("normalizer", fmt::format(R"({{"type": "Sequence", "normalizers": [{}]}})", steps));
  const auto tokenizer = Tokenizer::parse(json, "test");
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_THAT(tokenizer->encode("b", false).value(), ElementsAre(1));
  const auto ids = tokenizer->encode("a", false);
  ASSERT_FALSE(ids);
  EXPECT_THAT(ids.error().message, HasSubstr("normalizer"));
}

TEST(Tokenizer, AddedTokensTakeTheirSpace) {
  const std::string json = file("added_tokens", R"([
    {"id": 6, "content": "<l>", "special": true, "lstrip": true},
    {"id": 7, "content": "<r>", "special": true, "rstrip": true},
    {"id": 8, "content": "ba", "single_word": true}, {"id": 9, "content": "<l>c"}])");
  EXPECT_THAT(encode(json, "a <l> b"), ElementsAre(0, 6, 5, 1));
  EXPECT_THAT(encode(json, "a <r> b"), ElementsAre(0, 5, 7, 1));
  EXPECT_THAT(encode(json, "ba bab"), ElementsAre(8, 5, 1, 3));
  const auto tokenizer = Tokenizer::parse(json, "test");
  EXPECT_EQ(tokenizer->decode({0, 6, 8, 99, -1}, false), "a<l>ba");
  EXPECT_EQ(tokenizer->decode({0, 6, 8}, true), "aba");
  EXPECT_EQ(tokenizer->vocab_size(), 10);
}

TEST(Tokenizer, NamesWhatIsNotSupported) {
  const std::vector<std::array<std::string, 3>> cases = {
      {"type", "\"WordPiece\"", "WordPiece"},
      {"type", "\"Unigram\"", "Unigram"},
      {"dropout", "0.1", "dropout"},
      {"byte_fallback", "7", "byte_fallback"},
      {"continuing_subword_prefix", "\"##\"", "continuing_subword_prefix"},
      {"normalizer", R"({"type": "Lowercase"})", "Lowercase"},
      {"normalizer", R"({"type": "Prepend"})", "prepend"},
      {"normalizer", R"({"type": "Replace", "pattern": {"Regex": " "}, "content": "_"})", "Regex"},
      {"normalizer", R"({"type": "Replace", "pattern": {"String": ""}, "content": "_"})", "empty"},
      {"normalizer", R"({"type": "Replace", "pattern": {"String": " "}})", "content"},
      {"pre_tokenizer", R"({"type": "BertPreTokenizer"})", "BertPreTokenizer"},
      {"pre_tokenizer", R"({"type": "Metaspace"})", "replacement"},
      {"pre_tokenizer", R"({"type": "Metaspace", "replacement": "__"})", "__"},
      {"pre_tokenizer", R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "last"})",
       "last"},
      {"pre_tokenizer", R"({"type": "Metaspace", "replacement": "_", "add_prefix_space": false})",
       "add_prefix_space"},
      {"pre_tokenizer",
       R"({"type": "Sequence", "pretokenizers": [{"type": "ByteLevel"}, {"type": "ByteLevel"}]})",
       "another"},
      {"pre_tokenizer", R"({"type": "Split", "behavior": "Removed"})", "Removed"},
      {"post_processor", R"({"type": "BertProcessing"})", "BertProcessing"},
      {"post_processor", R"({"type": "TemplateProcessing", "single": []})", "0 times"},
      {"post_processor",
       R"({"type": "TemplateProcessing", "special_tokens": {"<s>": {"ids": [6]}},
           "single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}]})",
       "found 6"},
      {"decoder", R"({"type": "WordPiece"})", "WordPiece"},
      {"decoder", "null", "decoder"},
      {"decoder", R"({"type": "Replace", "pattern": {"String": "ab"}, "content": ""})", "ab"},
      {"decoder", R"({"type": "Strip", "content": " ", "start": 0, "stop": 1})", "stop"},
      {"decoder", R"({"type": "Strip", "content": "▁", "start": 1, "stop": 0})", "ASCII"},
      {"decoder", decoders(R"({"type": "Fuse"}, {"type": "ByteFallback"})"), "ByteFallback"},
      {"decoder", decoders(R"({"type": "ByteLevel"}, {"type": "ByteFallback"})"), "ByteFallback"},
      {"merges", R"(["a z"])", "z"},
      {"merges", R"(["a b c"])", "a b c"},
      {"merges", "7", "number"},
      {"vocab", R"({"a": -1})", "-1"},
      {"vocab", R"({"a": 0, "b": 0})", "twice"},
      {"vocab", R"({"a": [0]})", "list"},
      {"vocab", "[]", "a"},
      {"unk_token", "\"z\"", "unk_token"},
      {"added_tokens", R"([{"id": 0, "content": "new"}])", "new"},
      {"added_tokens", R"([{"id": 9, "content": "a"}])", "9"},
      {"added_tokens", R"([{"content": "a"}])", "null"},
  };
  for (const auto& [key, value, named] : cases) {
    const auto tokenizer = Tokenizer::parse(file(key, value), "t.json");
    ASSERT_FALSE(tokenizer) << key << " " << value;
    EXPECT_THAT(tokenizer.error().message, HasSubstr("t.json")) << key;
    EXPECT_THAT(tokenizer.error().message, HasSubstr(named)) << key;
  }
}

TEST(Tokenizer, BrokenFilesAreErrors) {
  const std::string whole = make_tokenizer_json(300, TokenizerStyle::kLlama3);
  EXPECT_FALSE(Tokenizer::parse("", "test"));
  EXPECT_FALSE(Tokenizer::parse("[]", "test"));
  EXPECT_FALSE(Tokenizer::parse("{}", "test"));
  for (size_t size = 0; size + 2 < whole.size(); size += 97) {
    EXPECT_FALSE(Tokenizer::parse(std::string_view(whole).substr(0, size), "test")) << size;
  }
  EXPECT_FALSE(Tokenizer::open("/nowhere"));
}

TEST(Tokenizer, EveryMadeStyleGivesTheBytesBack) {
  Random random(7);
  for (const auto style :
       {TokenizerStyle::kGpt2, TokenizerStyle::kLlama3, TokenizerStyle::kQwen2}) {
    const Tokenizer tokenizer = made(style);
    const std::string_view text =
        "The cache isn't cold: 1234 \u00e9\u4e16\u754c \U0001f600\n\n  end";
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text, true).value(), true), text);
    for (int i = 0; i < 200; ++i) {
      std::string bytes;
      for (uint64_t n = random.below(30); n > 0; --n) bytes += static_cast<char>(random.below(256));
      const auto ids = tokenizer.encode(bytes, false);
      ASSERT_TRUE(ids);
      // Malformed bytes are U+FFFD by now, and stay so. (NFC may have composed the rest.)
      const std::string once = tokenizer.decode(*ids, true);
      EXPECT_EQ(tokenizer.decode(tokenizer.encode(once, false).value(), true), once);
    }
  }
}

TEST(Tokenizer, SpecialTokensAreAddedOnDemand) {
  const Tokenizer tokenizer = made(TokenizerStyle::kLlama3);
  const auto bos = static_cast<int32_t>(*special_token_ids(600, TokenizerStyle::kLlama3).bos);
  EXPECT_THAT(tokenizer.encode("", true).value(), ElementsAre(bos));
  EXPECT_THAT(tokenizer.encode("", false).value(), ElementsAre());
  EXPECT_THAT(tokenizer.encode("<|begin_of_text|>", false).value(), ElementsAre(bos));
}

TEST(Tokenizer, LongRunsAreNotQuadratic) {
  // A quadratic merge of these takes minutes, and the test its time limit.
  const Tokenizer tokenizer = made(TokenizerStyle::kQwen2);
  for (const char c : {' ', 'a', '\n', '!'}) {
    const std::string run(2'000'000, c);
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(run, false).value(), true).size(), run.size());
  }
}

TEST(Tokenizer, OneLongWordIsNotQuadratic) {
  const auto tokenizer = Tokenizer::parse(kSentencePiece, "test");
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  std::string text;
  for (int i = 0; i < 500'000; ++i) text += "a b ";
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(text, false).value(), true), text);
}

TEST(TokenStream, HoldsBackRunsOfByteTokens) {
  const auto tokenizer = Tokenizer::parse(kSentencePiece, "test");
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  TokenStream stream(*tokenizer);
  std::vector<std::string> parts;
  for (const int32_t id : {1, 7, 4, 2, 3, 6, 3, 5, 2}) parts.push_back(stream.push(id));
  EXPECT_THAT(parts, ElementsAre("", "a", " ", "", "", "\u00e9b", "", "\ufffda", ""));
  EXPECT_EQ(stream.finish(), "\ufffd");
}

TEST(TokenStream, HoldsBackHalfCharacters) {
  const Tokenizer tokenizer = made(TokenizerStyle::kGpt2, 257);  // bytes alone
  const auto ids = tokenizer.encode("a\U0001f600b", false).value();
  ASSERT_EQ(ids.size(), 6u);
  TokenStream stream(tokenizer);
  std::vector<std::string> parts;
  for (const int32_t id : ids) parts.push_back(stream.push(id));
  EXPECT_THAT(parts, ElementsAre("a", "", "", "", "\U0001f600", "b"));
  EXPECT_EQ(stream.finish(), "");
  stream.push(ids[1]);
  stream.push(ids[2]);
  EXPECT_EQ(stream.push(ids[0]), "\ufffda");
  stream.push(ids[1]);
  EXPECT_EQ(stream.finish(), "\ufffd");
}

}  // namespace
}  // namespace assay::engine
