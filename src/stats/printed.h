// A number as somebody printed it: its value, and every value that is printed like that.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace assay::stats {

struct PrintedNumber {
  double value = 0;
  double low = 0;  // "11.87" is anything in [11.865, 11.875]
  double high = 0;
  bool is_bound = false;  // "<0.001": anything below
  std::string text;

  // A count or another figure without rounding.
  static PrintedNumber exact(double value);
};

// A decimal number with an optional sign, exponent, percent sign behind it and (for bounds) "<"
// before it; a Unicode minus is read as one. The error says what was expected and found, not where.
Result<PrintedNumber> parse_printed(std::string_view text);

}  // namespace assay::stats
