// A number as somebody printed it: its value, and every value that is printed like that.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace assay::stats {

// "<0.001" is below it, not near it: a bound has no rounding.
enum class Bound { kNone, kBelow, kAtMost, kAbove, kAtLeast };

struct PrintedNumber {
  double value = 0;
  double low = 0;  // "11.87" is anything in [11.865, 11.875]; "<1" in [-infinity, 1]
  double high = 0;
  Bound bound = Bound::kNone;
  bool is_percent = false;      // a percent sign stood behind it
  bool is_approximate = false;  // "≈0.5": a whole unit of the last digit to either side
  std::string text;

  bool is_bound() const { return bound != Bound::kNone; }
  // Value and range over 100, say.
  void scale(double factor);
  // A count or another figure without rounding.
  static PrintedNumber exact(double value);
};

// A decimal number as papers print it: a sign (a Unicode minus or an en dash too), thousands
// ("1,620"), an exponent ("2.59e-11", "2.59 x 10^-11", "10⁻¹¹"), a percent sign or an x behind it,
// "<", "≤", ">", "≥", "≈" or "=" before it, stars and Markdown's emphasis about it. The error says
// what was expected and found, not where.
Result<PrintedNumber> parse_printed(std::string_view text);

// True if a field says that nothing was printed: empty, a dash, "n/a".
bool is_unprinted(std::string_view text);

std::string_view trim(std::string_view text);

}  // namespace assay::stats
