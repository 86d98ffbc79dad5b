#include "base/tables/csv.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(Csv, WritesAndReadsBack) {
  const std::vector<std::string> fields = {"plain", "a,b", "say \"hi\"", "two\nlines", ""};
  const std::string text = csv_line(fields) + csv_line({"next"});
  CsvReader reader(text, "test");
  EXPECT_EQ(reader.next(), fields);
  EXPECT_EQ(reader.next(), std::vector<std::string>{"next"});
  EXPECT_EQ(reader.line(), 3u);
  EXPECT_TRUE(reader.done());
}

TEST(Csv, PeopleGetNoFormulaAndNoControlCharacter) {
  const auto shown = [](const std::string& field) {
    const std::string line = shown_csv_line({field});
    return line.substr(0, line.size() - 1);
  };
  for (const std::string formula : {"=1+1", "=cmd|' /C calc'!A0", "@SUM(A1)", "+1+1", "-2+3", "-",
                                    "--5", "+-5", "-inf", "+nan", "-0x1f", "-1e999", "\uFF1D1+1"}) {
    EXPECT_EQ(shown(formula), "'" + formula);
  }
  EXPECT_EQ(shown("=HYPERLINK(\"x\",\"y\")"), "\"'=HYPERLINK(\"\"x\"\",\"\"y\"\")\"");
  for (const std::string plain :
       {"-1.5", "+2", "-1e-300", "0", "a=b", "eager-dynamic", "'=", "", " =1"}) {
    EXPECT_EQ(shown(plain), plain);
  }
  EXPECT_EQ(shown("a\x1b[2J\u009b2J\u202eb\r\n"), "a\\x1b[2J\\x9b2J\\u202eb\\r\\n");
  EXPECT_EQ(shown("\t=1"), "\\t=1") << "no blank is left in front of it that a spreadsheet drops";
  EXPECT_EQ(shown_csv_line({"abcdef", "-1"}, 3), "abc...,-1\n");
}

TEST(Csv, AcceptsCrLf) {
  CsvReader reader("a,b\r\n", "test");
  EXPECT_EQ(reader.next(), (std::vector<std::string>{"a", "b"}));
}

TEST(Csv, HalfARecordIsAnError) {
  for (const char* text : {"a,b", "a,\"b\n", "\"a"}) {
    CsvReader reader(text, "rows.csv");
    const auto record = reader.next();
    ASSERT_FALSE(record) << text;
    EXPECT_NE(record.error().message.find("rows.csv line 1"), std::string::npos);
    EXPECT_TRUE(reader.done());
  }
}

TEST(Csv, ViewsGiveWhatCopiesGive) {
  const std::string text = "a,b\n\"x,\"\"y\"\"\",\r\n,\n\"two\nlines\",z\nlast,row\n";
  CsvReader copies(text, "text");
  CsvReader views(text, "text");
  std::vector<std::string_view> fields;
  while (!copies.done()) {
    const auto expected = copies.next();
    ASSERT_TRUE(expected);
    ASSERT_TRUE(views.next(fields));
    EXPECT_EQ(std::vector<std::string>(fields.begin(), fields.end()), *expected);
    EXPECT_EQ(views.line(), copies.line());
  }
  EXPECT_TRUE(views.done());
  EXPECT_EQ(views.line(), 6u);
  CsvReader cut("a,b\nc", "text");
  EXPECT_TRUE(cut.next(fields));
  EXPECT_FALSE(cut.next(fields));
}

TEST(Csv, AnotherDelimiterLeavesCommasAlone) {
  CsvReader reader("a;1,5\n\"b;c\";2\n", "table", ';');
  EXPECT_EQ(reader.next().value(), (std::vector<std::string>{"a", "1,5"}));
  EXPECT_EQ(reader.next().value(), (std::vector<std::string>{"b;c", "2"}));
}

TEST(Csv, MoreFieldsThanTheBoundAreAnError) {
  for (const char* text : {"a,b,c\n", "a,\"b\",c\n"}) {
    CsvReader fits(text, "table", ',', 3);
    EXPECT_EQ(fits.next().value().size(), 3U);
    CsvReader tight(text, "table", ',', 2);
    const auto refused = tight.next();
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().message, "table line 1: expected at most 2 fields, found more");
    EXPECT_TRUE(tight.done());
  }
}

}  // namespace
}  // namespace assay
