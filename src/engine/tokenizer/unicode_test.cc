#include "engine/tokenizer/unicode.h"

#include <gtest/gtest.h>

namespace assay::engine {
namespace {

TEST(Unicode, RepairsOneCharacterForEachMalformedRun) {
  EXPECT_EQ(repair_utf8("plain \u00e9 \U0001f600"), "plain \u00e9 \U0001f600");
  EXPECT_EQ(repair_utf8("\xff"), "\ufffd");
  EXPECT_EQ(repair_utf8("a\xe2\x82z"), "a\ufffdz");              // truncated: one for the run
  EXPECT_EQ(repair_utf8("\xc0\x80"), "\ufffd\ufffd");            // overlong: no sequence begins so
  EXPECT_EQ(repair_utf8("\xed\xa0\x80"), "\ufffd\ufffd\ufffd");  // surrogate
  EXPECT_EQ(repair_utf8("\xf4\x90\x80\x80"), "\ufffd\ufffd\ufffd\ufffd");  // past U+10FFFF
  EXPECT_EQ(repair_utf8("\xf0\x9f\x98"), "\ufffd");
}

TEST(Unicode, ReadsAndWritesEveryLength) {
  for (const char32_t code : {U'\0', U'a', U'\u007f', U'\u0080', U'\u07ff', U'\u0800', U'\uffff',
                              U'\U00010000', U'\U0010ffff'}) {
    std::string text;
    append_utf8(text, code);
    const Utf8Char c = read_utf8(text, 0);
    EXPECT_TRUE(c.valid);
    EXPECT_EQ(c.code, code);
    EXPECT_EQ(c.size, text.size());
  }
}

TEST(Unicode, TellsTruncatedFromBroken) {
  EXPECT_TRUE(read_utf8("\xf0\x9f", 0).truncated);
  EXPECT_FALSE(read_utf8("\xf0\x9fx", 0).truncated);
  EXPECT_FALSE(read_utf8("\x80", 0).truncated);
}

TEST(Unicode, ComposesCanonically) {
  EXPECT_EQ(normalize_nfc("e\u0301"), "\u00e9");
  EXPECT_EQ(normalize_nfc("s\u0307\u0323"), "\u1e69");       // marks in the other order
  EXPECT_EQ(normalize_nfc("\u212b"), "\u00c5");              // a singleton
  EXPECT_EQ(normalize_nfc("\u0958"), "\u0915\u093c");        // a composition exclusion
  EXPECT_EQ(normalize_nfc("\u1100\u1161\u11a8"), "\uac01");  // Hangul
  EXPECT_EQ(normalize_nfc("\ufb01"), "\ufb01");              // compatibility alone: stays
  EXPECT_EQ(normalize_nfc(std::string_view("a\0e\u0301", 5)), std::string("a\0\u00e9", 4));
}

TEST(Unicode, ClassesFollowTheRegularExpressionsOfTheFormat) {
  for (const char32_t space : {U' ', U'\t', U'\u0085', U'\u00a0', U'\u3000', U'\u2028'}) {
    EXPECT_TRUE(is_white_space(space));
  }
  EXPECT_FALSE(is_white_space(U'\u180e'));
  EXPECT_FALSE(is_white_space(U'\u200b'));
  for (const char32_t word : {U'a', U'_', U'9', U'\u0301', U'\u216b', U'\u24b6', U'\u200d'}) {
    EXPECT_TRUE(is_word_char(word));
  }
  EXPECT_FALSE(is_word_char(U'-'));
  EXPECT_FALSE(is_word_char(U'\u00bd'));
}

}  // namespace
}  // namespace assay::engine
