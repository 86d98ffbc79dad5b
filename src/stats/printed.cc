// The rounding interval of a printed number comes from the place of its last digit.
#include "stats/printed.h"

#include <charconv>
#include <cmath>

#include "base/text.h"

namespace assay::stats {
namespace {

constexpr std::string_view kUnicodeMinus = "\xE2\x88\x92";

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// The power of ten of the last printed digit.
int last_place(std::string_view digits) {
  const size_t e = digits.find_first_of("eE");
  int exponent = 0;
  if (e != std::string_view::npos) {
    std::string_view power = digits.substr(e + 1);
    if (!power.empty() && power.front() == '+') power.remove_prefix(1);
    std::from_chars(power.data(), power.data() + power.size(), exponent);
  }
  const std::string_view mantissa = digits.substr(0, e);
  const size_t point = mantissa.find('.');
  if (point == std::string_view::npos) return exponent;
  return exponent - static_cast<int>(mantissa.size() - point - 1);
}

}  // namespace

PrintedNumber PrintedNumber::exact(double value) {
  return {value, value, value, false, fmt::format("{}", value)};
}

Result<PrintedNumber> parse_printed(std::string_view text) {
  PrintedNumber number;
  number.text = trimmed(text);
  std::string_view rest = number.text;
  const auto refused = [&] {
    return bad_input("expected a decimal number, found {}", quoted_excerpt(text));
  };
  if (rest.starts_with('<')) {
    number.is_bound = true;
    rest = trimmed(rest.substr(1));
  }
  bool negative = false;
  if (rest.starts_with(kUnicodeMinus)) {
    negative = true;
    rest.remove_prefix(kUnicodeMinus.size());
  } else if (rest.starts_with('-') || rest.starts_with('+')) {
    negative = rest.front() == '-';
    rest.remove_prefix(1);
  }
  if (rest.ends_with('%')) rest = trimmed(rest.substr(0, rest.size() - 1));
  if (rest.empty() || rest.size() > 60) return refused();
  if (rest.find_first_not_of("0123456789.eE+-") != std::string_view::npos) return refused();
  if (rest.front() == '-' || rest.front() == '+') return refused();
  const auto [end, failure] = std::from_chars(rest.data(), rest.data() + rest.size(), number.value);
  if (failure != std::errc() || end != rest.data() + rest.size()) return refused();
  if (!std::isfinite(number.value)) return refused();
  const double half = 0.5 * std::pow(10, last_place(rest));
  if (negative) number.value = -number.value;
  number.low = number.value - half;
  number.high = number.value + half;
  if (number.is_bound) number.low = -HUGE_VAL;
  if (!std::isfinite(number.high)) return refused();
  return number;
}

}  // namespace assay::stats
