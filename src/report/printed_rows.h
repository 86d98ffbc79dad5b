// PrintedNumber tables and numbers taken apart again, for tests that hold them against findings.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "analysis/findings/contrast.h"
#include "base/text/text.h"

namespace assay {

using RowCells = std::map<std::string, std::string>;  // by column

// A number as it is printed, and by how much it may be rounded.
struct PrintedNumber {
  double value = 0;
  double rounding = 0;
  explicit PrintedNumber(const std::string& text) {
    value = std::stod(text);
    const size_t point = text.find('.');
    const size_t decimals = point == std::string::npos ? 0 : text.size() - point - 1;
    rounding = 0.5000001 * std::pow(10, -static_cast<double>(decimals));
  }
};

inline void expect_number(const std::string& printed, double found, const std::string& where) {
  const PrintedNumber number(printed);
  EXPECT_NEAR(number.value, found, number.rounding) << where;
}

// The least and the largest ratio of one arm over some strata, and the hull of the intervals.
struct Hull {
  std::optional<stats::Interval> ratios;
  std::optional<stats::Interval> intervals;
  void add(double ratio, const std::optional<stats::Interval>& interval) {
    if (!interval) return;
    const auto widened = [](const std::optional<stats::Interval>& hull, stats::Interval by) {
      if (!hull) return by;
      return stats::Interval{std::min(hull->low, by.low), std::max(hull->high, by.high)};
    };
    ratios = widened(ratios, {ratio, ratio});
    intervals = widened(intervals, *interval);
  }
};

// "0.79-0.85 [0.77, 0.92]", "0.79 to 0.85 [0.77, 0.92]", "0.79 [0.77, 0.80]".
inline const std::string kNumber = "([0-9]+(?:\\.[0-9]+)?)";
inline const std::string kRatio =
    kNumber + "(?:(?:-| to )" + kNumber + ")? \\[" + kNumber + ", " + kNumber + "\\]";

inline void expect_ratio(const std::smatch& match, size_t first, const Hull& found,
                         const std::string& where) {
  ASSERT_TRUE(found.ratios) << where;
  const std::string low = match[first];
  const std::string high = match[first + 1].matched ? match[first + 1].str() : low;
  expect_number(low, found.ratios->low, where);
  expect_number(high, found.ratios->high, where);
  expect_number(match[first + 2], found.intervals->low, where);
  expect_number(match[first + 3], found.intervals->high, where);
}

inline void expect_ratio(const std::string& text, const Hull& found, const std::string& where) {
  std::smatch match;
  ASSERT_TRUE(std::regex_match(text, match, std::regex(kRatio))) << where;
  expect_ratio(match, 1, found, where);
}

// Rows of the text's tables that begin with the column "phase" and have "take".
inline std::vector<RowCells> text_rows(const std::string& text) {
  std::vector<RowCells> rows;
  const std::vector<std::string> lines = split(text, '\n');
  for (size_t i = 1; i < lines.size(); ++i) {
    if (!lines[i].starts_with("-----") || !lines[i - 1].contains("  take ")) continue;
    const std::string& heads = lines[i - 1];
    for (size_t row = i + 1; row < lines.size(); ++row) {
      if (!lines[row].starts_with("prefill ") && !lines[row].starts_with("kv_decode ")) break;
      RowCells& cells = rows.emplace_back();
      for (size_t at = 0; at < lines[i].size();) {
        const size_t end = std::min(lines[i].find(' ', at), lines[i].size());
        const auto cut = [&](const std::string& line) {
          const std::string wide = line.size() <= at ? "" : line.substr(at, end - at);
          const size_t first = wide.find_first_not_of(' ');
          if (first == std::string::npos) return std::string();
          return wide.substr(first, wide.find_last_not_of(' ') + 1 - first);
        };
        cells[cut(heads)] = cut(lines[row]);
        at = lines[i].find_first_not_of(' ', end);
      }
    }
  }
  return rows;
}

// Rows of the page's tables of choices, by the names of their columns.
inline std::vector<RowCells> page_rows(const std::string& page) {
  std::vector<RowCells> rows;
  const std::regex row("<tr role=row>(.*)</tr>");
  const std::regex cell("<td role=cell data-label=\"([^\"]*)\">(?:<b [^>]*>)?([^<]*)");
  for (std::sregex_iterator it(page.begin(), page.end(), row), end; it != end; ++it) {
    const std::string cells = (*it)[1];
    RowCells& made = rows.emplace_back();
    for (std::sregex_iterator of(cells.begin(), cells.end(), cell); of != end; ++of) {
      made[(*of)[1]] = (*of)[2];
    }
    if (!made.contains("take")) rows.pop_back();
  }
  return rows;
}

inline std::string said_of(const RowCells& row) {
  std::string text;
  for (const auto& [column, value] : row) text += fmt::format("{}={} ", column, value);
  return text;
}

}  // namespace assay
