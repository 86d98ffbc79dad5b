#include "engine/tokenizer/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "base/random.h"
#include "base/text.h"
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

TEST(Tokenizer, UnknownBytesAreDroppedOrMarked) {
  EXPECT_THAT(encode(file("", ""), "axxb"), ElementsAre(3));
  EXPECT_THAT(encode(file("unk_token", "\"c\""), "axxb"), ElementsAre(0, 2, 2, 1));
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
      {"byte_fallback", "true", "byte_fallback"},
      {"continuing_subword_prefix", "\"##\"", "continuing_subword_prefix"},
      {"normalizer", R"({"type": "Lowercase"})", "Lowercase"},
      {"pre_tokenizer", R"({"type": "Metaspace"})", "Metaspace"},
      {"pre_tokenizer", "null", "ByteLevel"},
      {"pre_tokenizer", R"({"type": "Split", "behavior": "Removed"})", "Removed"},
      {"post_processor", R"({"type": "BertProcessing"})", "BertProcessing"},
      {"post_processor", R"({"type": "TemplateProcessing", "single": []})", "0 times"},
      {"decoder", R"({"type": "WordPiece"})", "WordPiece"},
      {"decoder", "null", "ByteLevel"},
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
      // What was malformed is U+FFFD by now, and stays so. (NFC may have composed the rest.)
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
