// Numbers as papers print them, and tables that people write by hand.
#include "stats/audit/published_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "stats/audit/printed.h"

namespace assay::stats {
namespace {

using enum Figure;

std::string error_of(const std::string& csv) {
  const auto table = parse_published_table(csv, "table.csv");
  EXPECT_FALSE(table);
  return table ? "" : table.error().message;
}

TEST(Printed, IsEverythingThatRoundsToIt) {
  const auto number = parse_printed("11.87");
  EXPECT_DOUBLE_EQ(number->low, 11.865);
  EXPECT_DOUBLE_EQ(number->high, 11.875);
  EXPECT_DOUBLE_EQ(parse_printed("8.87e-61")->low, 8.865e-61);
  EXPECT_DOUBLE_EQ(parse_printed("-1.50E+2")->low, -150.5);
  EXPECT_DOUBLE_EQ(parse_printed("40")->high, 40.5);
  EXPECT_DOUBLE_EQ(parse_printed(".05")->low, 0.045);
  EXPECT_DOUBLE_EQ(parse_printed("≈0.5")->high, 0.6);
}

TEST(Printed, ReadsWhatPapersPrint) {
  const std::pair<const char*, double> values[] = {
      {"1,620", 1620},
      {"12,345,678.5", 12345678.5},
      {"1 620", 1620},
      {"2.59 x 10^-11", 2.59e-11},
      {"2.59 × 10⁻¹¹", 2.59e-11},
      {"2.59·10−11", 2.59e-11},
      {"2.59\\times10^{-11}", 2.59e-11},
      {"10^-11", 1e-11},
      {"1.5x10^3", 1500},
      {"−0.59", -0.59},
      {"–0.59", -0.59},
      {" 12.5 % ", 12.5},
      {"1.67x", 1.67},
      {"1.67×", 1.67},
      {"**16.8**", 16.8},
      {"0.03*", 0.03},
      {"`7`", 7},
      {"= .03", 0.03},
      {"+2", 2},
      {"≈ 0", 0},
      {"~3", 3},
  };
  for (const auto& [text, value] : values) {
    const auto number = parse_printed(text);
    ASSERT_TRUE(number) << text;
    EXPECT_DOUBLE_EQ(number->value, value) << text;
    EXPECT_FALSE(number->is_bound()) << text;
  }
  EXPECT_DOUBLE_EQ(parse_printed("2.59 x 10^-11")->high, 2.595e-11);
  EXPECT_DOUBLE_EQ(parse_printed("1,620")->high, 1620.5);
  for (const char* bad : {"", "x", "1,2", "1,62", "1,6200", ",620", "nan", "inf", "1e999", "--1",
                          "0x10", "1.2.3", "<", "%", "2 x 3", "2 x 10^", "1e", "1..2", "<<1"}) {
    EXPECT_FALSE(parse_printed(bad)) << bad;
  }
}

TEST(Printed, KeepsABoundAsItIs) {
  EXPECT_EQ(parse_printed("< 0.001")->bound, Bound::kBelow);
  EXPECT_EQ(parse_printed("≤.05")->bound, Bound::kAtMost);
  EXPECT_EQ(parse_printed("<= .05")->bound, Bound::kAtMost);
  EXPECT_EQ(parse_printed("> 0.1")->bound, Bound::kAbove);
  EXPECT_EQ(parse_printed("≥0.1")->bound, Bound::kAtLeast);
  EXPECT_EQ(parse_printed("&lt; 10^-4")->bound, Bound::kBelow);
  EXPECT_EQ(parse_printed("<0.001")->high, 0.001);
}

TEST(PublishedTable, RefusesBadTablesInOneLine) {
  EXPECT_EQ(error_of(""), "table.csv: expected a header line, found an empty file");
  EXPECT_EQ(error_of("# only this\n"), "table.csv: expected a header line, found none");
  EXPECT_NE(error_of("mean_a,mean_c\n1,2\n").find("line 1: expected a column of"),
            std::string::npos);
  EXPECT_NE(error_of("mean_a,mean_c\n1,2\n").find("did you mean \"mean_a\""), std::string::npos);
  EXPECT_EQ(error_of("t,t\n1,2\n"),
            "table.csv line 1: expected each column once, found \"t\" more often");
  EXPECT_EQ(error_of("t,p\n1\n"), "table.csv line 2: expected 2 fields, found 1");
  EXPECT_EQ(error_of("t,p\n1,oops\n"),
            "table.csv line 2 column p: expected a decimal number, found \"oops\"");
  EXPECT_EQ(error_of("# a comment\nn_a,t\n\n1.5,2\n"),
            "table.csv line 4 column n_a: expected a whole number of at least 1, found \"1.5\"");
  EXPECT_EQ(error_of("sd_a,t\n-1,2\n"),
            "table.csv line 2 column sd_a: expected a number of at least 0, found \"-1\"");
  EXPECT_EQ(
      error_of("mean_a,p\n<1,0.5\n"),
      "table.csv line 2 column mean_a: expected a number without \"<\" or \">\", found \"<1\"");
  EXPECT_EQ(error_of("count_a,rate_a\n5 of 3,1\n"),
            "table.csv line 2 column count_a: expected at most 3 of total_a, found 5");
  EXPECT_EQ(error_of("p_list,p_adjusted\n.1;.2,.2\n"),
            "table.csv line 2 column p_adjusted: expected 2 numbers as in p_list, found 1");
  EXPECT_EQ(error_of("ci,t\n4.2,2\n"),
            "table.csv line 2 column ci: expected an interval [low, high], found \"4.2\"");
  EXPECT_EQ(error_of("ci,ci_low\n4.2;5.3,4.2\n"),
            "table.csv line 2 column ci_low: expected one figure, found a second, \"4.2\"");
  EXPECT_NE(error_of("method,t\nwelsh,2\n").find("did you mean \"welch\""), std::string::npos);
  EXPECT_NE(error_of("mean_a\n1\n").find("at least one claimed figure"), std::string::npos);
  EXPECT_NE(error_of("t\n\"1\n").find("closing quote"), std::string::npos);
  EXPECT_EQ(error_of(std::string("t\n\x01\x02") + std::string(500, 'z') + "\n").find('\n'),
            std::string::npos);
}

TEST(PublishedTable, IsReadAsItIsWritten) {
  const auto table = parse_published_table(
      "\xEF\xBB\xBF# from page 3\nLabel,T,df,p\r\n\"eager, warm\",2.1,38,0.042\r\n\r\n"
      "other,–,38,n/a",
      "t.csv");
  ASSERT_TRUE(table) << table.error().message;
  ASSERT_EQ(table->rows.size(), 2u);
  EXPECT_EQ(table->rows[0].label, "eager, warm");
  EXPECT_EQ(table->rows[0].line, 3u);
  EXPECT_EQ(table->rows[1].line, 5u);
  EXPECT_EQ(table->rows[1].figures.numbers.size(), 1u);
}

TEST(PublishedTable, ReadsEveryMarkdownTableOfAText) {
  const auto table = parse_published_table(
      "# A paper\n\nSome text, with commas.\n\n"
      "| arm | what |\n|---|---|\n| eager | other table |\n\n"
      "| label | **n_a** | t | p |\n|:---|---:|---:|---|\n"
      "| one \\| two | 1,620 | 2.10 | <0.05 |\n| three | – | **3.1** | 2.5 × 10⁻³ |\n\nMore.\n",
      "paper.md");
  ASSERT_TRUE(table) << table.error().message;
  ASSERT_EQ(table->rows.size(), 2u);
  EXPECT_EQ(table->rows[0].label, "one | two");
  EXPECT_EQ(table->rows[0].line, 11u);
  EXPECT_EQ(table->rows[0].figures.numbers.at(kNA).value, 1620);
  EXPECT_DOUBLE_EQ(table->rows[1].figures.numbers.at(kP).value, 2.5e-3);
  EXPECT_NE(error_of("| x | y |\n|---|---|\n| 1 | 2 |\n").find("at least one claimed figure"),
            std::string::npos);
  EXPECT_NE(error_of("| t | y |\n|---|---|\n| 1 | 2 |\n").find("found \"y\""), std::string::npos);
}

TEST(PublishedTable, ReadsPairsCountsAndPercentages) {
  const auto table = parse_published_table(
      "ci,rate_a_ci,count_a,confidence,p\n\"[1,620, −1.5]\",75.5–84.5 %,240 of 300,95,5 %\n"
      "1.2 to 3.4,(0.7; 0.8),240/300,0.9,≈0\n",
      "t.csv");
  ASSERT_TRUE(table) << table.error().message;
  const auto& first = table->rows[0].figures.numbers;
  EXPECT_EQ(first.at(kCiLow).value, 1620);
  EXPECT_EQ(first.at(kCiHigh).value, -1.5);
  EXPECT_DOUBLE_EQ(first.at(kRateALow).value, 0.755);
  EXPECT_DOUBLE_EQ(first.at(kRateAHigh).high, 0.8455);
  EXPECT_EQ(first.at(kTotalA).value, 300);
  EXPECT_DOUBLE_EQ(first.at(kConfidence).value, 0.95);
  EXPECT_DOUBLE_EQ(first.at(kP).value, 0.05);
  const auto& second = table->rows[1].figures.numbers;
  EXPECT_EQ(second.at(kCiHigh).value, 3.4);
  EXPECT_DOUBLE_EQ(second.at(kConfidence).value, 0.9);
  EXPECT_LE(second.at(kP).high, 0.001);  // not everything that rounds to 0
}

TEST(PublishedTable, HasATemplateThatItReads) {
  const std::string text = published_table_template();
  const auto table = parse_published_table(text, "template");
  ASSERT_TRUE(table) << table.error().message;
  for (const FigureColumn& column : figure_columns()) {
    EXPECT_NE(text.find("\n# " + std::string(column.name) + ": "), std::string::npos);
  }
  for (const AuditedFigure& figure : audit_row(table->rows.at(0).figures)) {
    EXPECT_EQ(figure.verdict, Verdict::kConsistent) << figure_name(figure.figure);
  }
}

}  // namespace
}  // namespace assay::stats
