#include "base/text/shown_text.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/tables/table.h"
#include "base/text/text.h"

namespace assay {
namespace {

TEST(ShownText, PlainTextStaysAsItIs) {
  for (const char* text : {"", "eager-dynamic", "caf\u00e9 \u2264 \U0001F600", "a < b | c\\n"}) {
    EXPECT_EQ(shown_line(text), text);
  }
}

TEST(ShownText, WhatATerminalWouldObeyIsEscaped) {
  EXPECT_EQ(shown_line("a\x1b[31mred\n\r\tb\x7f"), "a\\x1b[31mred\\n\\r\\tb\\x7f");
  EXPECT_EQ(shown_line("\u009b31m"), "\\x9b31m") << "the control sequence introducer of C1";
  EXPECT_EQ(shown_line("abc\u202egpj.exe\u2028x"), "abc\\u202egpj.exe\\u2028x");
  EXPECT_EQ(shown_line(std::string_view("a\0b", 3)), "a\\x00b");
}

TEST(ShownText, BytesThatAreNoUtf8AreEscaped) {
  EXPECT_EQ(shown_line("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(shown_line("\xc0\x80 \xed\xa0\x80 \xe2\x82"), "\\xc0\\x80 \\xed\\xa0\\x80 \\xe2\\x82");
}

TEST(ShownText, LongTextIsCutBetweenCharacters) {
  EXPECT_EQ(shown_line("0123456789", 10), "0123456789");
  EXPECT_EQ(shown_line("0123456789a", 10), "0123456789...");
  EXPECT_EQ(shown_line("caf\u00e9!", 4), "caf...");
  // Its length is meant. NOLINTNEXTLINE(bugprone-string-constructor)
  const std::string huge(27'000'000, '1');
  EXPECT_LT(shown_line(huge).size(), 2 * kLongestLine);
}

TEST(ShownText, MarkdownGetsNoCellTagOrLinkOfIt) {
  EXPECT_EQ(markdown_line("a|b"), "a&#124;b");
  EXPECT_EQ(markdown_line("<script>x</script><!--"), "&lt;script>x&lt;/script>&lt;!--");
  EXPECT_EQ(markdown_line("![x](http://h)"), "![x]&#40;http://h)");
  EXPECT_EQ(markdown_line("p < 0.05 [1, 2] (3)"), "p < 0.05 [1, 2] (3)");
  EXPECT_EQ(markdown_line("a\nb"), "a\\nb");
}

TEST(ShownText, HtmlGetsNoTagEntityOrEndOfAnAttribute) {
  EXPECT_EQ(html_text("<script>x</script>"), "&lt;script&gt;x&lt;/script&gt;");
  EXPECT_EQ(html_text("\" onload='x' &lt;"), "&quot; onload=&#39;x&#39; &amp;lt;");
  EXPECT_EQ(html_text("a\x1b[2J\nb\u202e"), "a\\x1b[2J\\nb\\u202e");
  EXPECT_EQ(html_text("caf\u00e9"), "caf\u00e9");
  EXPECT_EQ(html_text("a&b", 4), "a...") << "no entity is cut in half";
}

TEST(ShownText, ExcerptsOfErrorsAreSafeAndShort) {
  EXPECT_EQ(quoted_excerpt("\x1b[2J"), "\"\\x1b[2J\"");
  EXPECT_EQ(excerpt(std::string(61, 'a')), std::string(60, 'a') + "...");
}

// Names come from a study or a bundle of anybody.
TEST(ShownText, TablesShowNamesAndObeyNone) {
  Table table;
  table.title = "of \x1b[31m<b>";
  table.columns = columns_of("<arm|<text");
  table.rows = {{"a\x1b[2J|<script>", "x\ny"}, {std::string(1'000'000, 'z'), ""}};
  const std::string text = table.render(OutputFormat::kTable);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(std::ranges::count(text, '\n'), 5) << "title, heading, rule and two rows";
  EXPECT_LT(text.size(), 20'000u);
  const std::string markdown = table.render(OutputFormat::kMarkdown);
  EXPECT_EQ(markdown.find('\x1b'), std::string::npos);
  EXPECT_EQ(markdown.find("<script>"), std::string::npos);
  EXPECT_EQ(markdown.find("<b>"), std::string::npos);
  EXPECT_EQ(std::ranges::count(markdown, '|'), 4 * 3) << "three for each line of two columns";
  EXPECT_EQ(table.to_json()[0]["arm"], "a\x1b[2J|<script>") << "machines get the value";
}

}  // namespace
}  // namespace assay
