#include "base/tables/table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace assay {
namespace {

Table sample() {
  Table table;
  table.title = "prefill";
  table.columns = columns_of("<arm|mean_ms|n");
  table.rows = {{"eager", 1.23456789, int64_t{30}},
                {"caf\u00e9, \"x\"", TableCell::absent(), int64_t{0}}};
  return table;
}

TEST(Table, AsAlignedText) {
  EXPECT_EQ(sample().render(OutputFormat::kTable),
            "prefill\n"
            "arm        mean_ms    n\n"
            "---------  -------  ---\n"
            "eager        1.235   30\n"
            "caf\u00e9, \"x\"        -    0\n");
}

TEST(Table, AsMarkdown) {
  EXPECT_EQ(sample().render(OutputFormat::kMarkdown),
            "### prefill\n\n"
            "| arm       | mean_ms |   n |\n"
            "| --------- | ------: | --: |\n"
            "| eager     |   1.235 |  30 |\n"
            "| caf\u00e9, \"x\" |       - |   0 |\n");
}

TEST(Table, MachinesGetTheFullValue) {
  EXPECT_EQ(sample().render(OutputFormat::kCsv),
            "arm,mean_ms,n\neager,1.23456789,30\n\"caf\u00e9, \"\"x\"\"\",,0\n");
  const auto json = parse_json(sample().render(OutputFormat::kJson), "t");
  ASSERT_TRUE(json);
  EXPECT_EQ(to_json_line(*json), R"([{"arm":"eager","mean_ms":1.23456789,"n":30},)"
                                 "{\"arm\":\"caf\u00e9, \\\"x\\\"\",\"mean_ms\":null,\"n\":0}]");
}

TEST(Table, WhatIsNoNumberIsAbsent) {
  for (double value : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    EXPECT_TRUE(TableCell(value).value.is_null());
  }
  EXPECT_TRUE(TableCell(std::optional<double>()).value.is_null());
  EXPECT_EQ(TableCell(0.0).value, 0.0) << "zero is a value";
}

TEST(Table, FormatsHaveNames) {
  EXPECT_EQ(parse_output_format("table"), OutputFormat::kTable);
  EXPECT_EQ(parse_output_format("json"), OutputFormat::kJson);
  EXPECT_EQ(parse_output_format("csv"), OutputFormat::kCsv);
  EXPECT_EQ(parse_output_format("md"), OutputFormat::kMarkdown);
  EXPECT_EQ(parse_output_format("xml").error().message,
            "output format: expected table, json, csv or md, found \"xml\"");
}

TEST(Table, KeepsToATerminalsWidthByShorteningText) {
  Table table;
  table.columns = columns_of("<name|ms|<why");
  table.rows = {{"an-arm-with-a-long-name", TableCell(123.456, 6),
                 "\u00e4 reason that takes many more columns"},
                {"b", 1.5, TableCell::absent()}};
  const std::string whole = table.render(OutputFormat::kTable);
  EXPECT_EQ(table.render(OutputFormat::kTable, 200), whole);
  const std::string narrow = table.render(OutputFormat::kTable, 40);
  EXPECT_EQ(narrow,
            "name                 ms  why\n"
            "--------------  -------  ---------------\n"
            "an-arm...-name  123.456  \u00e4 reas...olumns\n"
            "b                 1.500  -\n");
  // Numbers stay whole, whatever that takes.
  EXPECT_NE(table.render(OutputFormat::kTable, 5).find("123.456"), std::string::npos);
  EXPECT_EQ(table.render(OutputFormat::kCsv, 5), table.render(OutputFormat::kCsv));
  table.rows = {{"=1\u0090", int64_t{-3}}};
  table.columns.resize(2);
  EXPECT_TRUE(table.render(OutputFormat::kCsv).ends_with("\n'=1\\x90,-3\n"));
}

TEST(Table, NoTextOfFiguresIsShortened) {
  Table table;
  table.columns = columns_of("<name|=ratio");
  table.rows = {{"an-arm-with-a-long-name", "0.045-0.068 [0.028, 0.095]"}};
  EXPECT_EQ(table.render(OutputFormat::kTable, 40),
            "name          ratio\n"
            "------------  --------------------------\n"
            "an-ar...name  0.045-0.068 [0.028, 0.095]\n");
}

}  // namespace
}  // namespace assay
