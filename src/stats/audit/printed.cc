// The rounding interval of a printed number comes from the place of its last digit.
#include "stats/audit/printed.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <span>
#include <utility>

#include "base/text/text.h"

namespace assay::stats {
namespace {

struct Spelling {
  std::string_view printed;
  std::string_view plain;
};

// ASCII characters as typesetting prints them. Where one spelling begins another, the longer comes
// first.
constexpr std::array kSpellings = {
    Spelling{"\xE2\x88\x92", "-"},  // minus
    Spelling{"\xE2\x80\x93", "-"},  // en dash
    Spelling{"\xE2\x80\x91", "-"},  // hyphen that doesn't break
    Spelling{"\xE2\x80\x90", "-"},
    Spelling{"\xC3\x97", "x"},      // times
    Spelling{"\xC2\xB7", "x"},      // middle dot
    Spelling{"\xE2\x8B\x85", "x"},  // dot operator
    Spelling{"\\times", "x"},
    Spelling{"\\cdot", "x"},
    Spelling{"\xE2\x89\xA4", "<="},
    Spelling{"\xE2\x89\xA5", ">="},
    Spelling{"\xE2\x89\x88", "~"},
    Spelling{"\xE2\x88\xBC", "~"},
    Spelling{"&lt;", "<"},
    Spelling{"&gt;", ">"},
    Spelling{"\\<", "<"},
    Spelling{"\\>", ">"},
    Spelling{"\xC2\xA0", " "},      // spaces that don't break
    Spelling{"\xE2\x80\x89", " "},  // thin
    Spelling{"\xE2\x80\xAF", " "},
    Spelling{"\xE2\x80\xA0", ""},  // daggers
    Spelling{"\xE2\x80\xA1", ""},
    Spelling{"{", ""},
    Spelling{"}", ""},
    Spelling{"$", ""},
    Spelling{"`", ""},
    Spelling{"*", ""},
};
constexpr std::array kSuperscripts = {
    Spelling{"\xE2\x81\xBB", "-"}, Spelling{"\xE2\x81\xBA", "+"}, Spelling{"\xE2\x81\xB0", "0"},
    Spelling{"\xC2\xB9", "1"},     Spelling{"\xC2\xB2", "2"},     Spelling{"\xC2\xB3", "3"},
    Spelling{"\xE2\x81\xB4", "4"}, Spelling{"\xE2\x81\xB5", "5"}, Spelling{"\xE2\x81\xB6", "6"},
    Spelling{"\xE2\x81\xB7", "7"}, Spelling{"\xE2\x81\xB8", "8"}, Spelling{"\xE2\x81\xB9", "9"},
};

const Spelling* spelling_at(std::string_view text, std::span<const Spelling> known) {
  for (const Spelling& one : known) {
    if (text.starts_with(one.printed)) return &one;
  }
  return nullptr;
}

std::string in_ascii(std::string_view text) {
  std::string plain;
  bool raised = false;
  while (!text.empty()) {
    const Spelling* super = spelling_at(text, kSuperscripts);
    const Spelling* found = super ? super : spelling_at(text, kSpellings);
    if (super && !raised) plain += '^';
    raised = super != nullptr;
    if (found) {
      plain += found->plain;
      text.remove_prefix(found->printed.size());
    } else {
      plain += text.front();
      text.remove_prefix(1);
    }
  }
  return plain;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Cuts the longest run of digits and characters of `more` off the front.
std::string_view take(std::string_view& text, std::string_view more) {
  size_t end = 0;
  while (end < text.size() && (is_digit(text[end]) || more.contains(text[end]))) ++end;
  const std::string_view taken = text.substr(0, end);
  text.remove_prefix(end);
  return taken;
}

bool skip(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// Digits with a point, thousands removed; empty if it isn't that. A separator must stand before
// every three digits of the whole part.
std::string decimal(std::string_view digits) {
  const size_t point = digits.find('.');
  const std::string_view whole = digits.substr(0, point);
  const std::string_view fraction = point == std::string_view::npos ? "" : digits.substr(point + 1);
  if (fraction.find_first_not_of("0123456789") != std::string_view::npos) return "";
  std::string plain;
  const size_t separators =
      whole.size() - static_cast<size_t>(std::count_if(whole.begin(), whole.end(), is_digit));
  for (size_t i = 0; i < whole.size(); ++i) {
    const size_t left = whole.size() - i;
    if (separators == 0 || left % 4 != 0) {
      if (!is_digit(whole[i])) return "";
      plain += whole[i];
    } else if (is_digit(whole[i]) || i == 0) {
      return "";
    }
  }
  if (plain.empty() && fraction.empty()) return "";
  if (plain.empty()) plain = "0";
  if (point != std::string_view::npos) plain += "." + std::string(fraction);
  return plain;
}

// "e-11", "x 10^-11", "x 10-11"; 0 where there is none, absent where it is broken.
std::optional<int> take_exponent(std::string_view& rest, bool of_ten) {
  rest = trim(rest);
  bool marked = of_ten;
  if (!marked && (rest.starts_with('e') || rest.starts_with('E'))) {
    rest.remove_prefix(1);
    marked = true;
  } else if (!marked && (rest.starts_with('x') || rest.starts_with('X'))) {
    std::string_view ahead = trim(rest.substr(1));
    if (ahead.empty()) return 0;  // "1.67x"
    if (!skip(ahead, "10")) return std::nullopt;
    rest = ahead;
    skip(rest, "^");
    marked = true;
  }
  if (!marked) return 0;
  rest = trim(rest);
  const bool negative = rest.starts_with('-');
  if (negative || rest.starts_with('+')) rest.remove_prefix(1);
  const std::string_view digits = take(rest, "");
  int exponent = 0;
  const auto [end, failure] =
      std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
  if (failure != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return negative ? -exponent : exponent;
}

constexpr std::pair<std::string_view, Bound> kBounds[] = {
    {"<=", Bound::kAtMost}, {">=", Bound::kAtLeast}, {"<", Bound::kBelow}, {">", Bound::kAbove}};

}  // namespace

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

void PrintedNumber::scale(double factor) {
  value *= factor;
  low *= factor;
  high *= factor;
}

PrintedNumber PrintedNumber::exact(double value) {
  PrintedNumber number;
  number.value = number.low = number.high = value;
  number.text = fmt::format("{}", value);
  return number;
}

bool is_unprinted(std::string_view text) {
  const std::string_view field = trim(text);
  for (const std::string_view word :
       {"", "-", "\xE2\x80\x93", "\xE2\x80\x94", "n/a", "N/A", "NA", "na"}) {
    if (field == word) return true;
  }
  return false;
}

Result<PrintedNumber> parse_printed(std::string_view text) {
  const auto refused = [&] {
    return bad_input("expected a decimal number, found {}", quoted_excerpt(text));
  };
  if (text.size() > 200) return refused();
  PrintedNumber number;
  number.text = trim(text);
  const std::string plain = in_ascii(number.text);
  std::string_view rest = trim(plain);
  for (const auto& [sign, bound] : kBounds) {
    if (number.bound == Bound::kNone && skip(rest, sign)) number.bound = bound;
  }
  number.is_approximate = skip(rest, "~");
  if (number.bound == Bound::kNone) skip(rest, "=");
  rest = trim(rest);
  const bool negative = rest.starts_with('-');
  if (negative || rest.starts_with('+')) rest.remove_prefix(1);
  if (rest.ends_with('%')) {
    number.is_percent = true;
    rest = trim(rest.substr(0, rest.size() - 1));
  }
  if (rest.size() > 60) return refused();
  const bool of_ten = rest.starts_with("10^");  // a power alone
  if (of_ten) rest.remove_prefix(3);
  std::string digits = "1";
  if (!of_ten) {
    std::string_view run = rest;
    std::string_view taken = take(run, "., ");
    while (taken.ends_with(' ')) taken.remove_suffix(1);
    digits = decimal(taken);
    rest.remove_prefix(taken.size());
  }
  if (digits.empty()) return refused();
  const auto exponent = take_exponent(rest, of_ten);
  if (!exponent || std::abs(*exponent) > 400) return refused();
  rest = trim(rest);
  if (!(rest.empty() || rest == "x" || rest == "X")) return refused();
  const size_t point = digits.find('.');
  const int decimals = point == std::string::npos ? 0 : static_cast<int>(digits.size() - point - 1);
  const std::string whole = digits + "e" + std::to_string(*exponent);
  const auto [end, failure] =
      std::from_chars(whole.data(), whole.data() + whole.size(), number.value);
  if (failure != std::errc() || end != whole.data() + whole.size()) return refused();
  if (!std::isfinite(number.value)) return refused();
  if (negative) number.value = -number.value;
  const double half = (number.is_approximate ? 1 : 0.5) * std::pow(10, *exponent - decimals);
  number.low = number.value - half;
  number.high = number.value + half;
  if (number.bound == Bound::kBelow || number.bound == Bound::kAtMost) {
    number.low = -HUGE_VAL;
    number.high = number.value;
  } else if (number.is_bound()) {
    number.low = number.value;
    number.high = HUGE_VAL;
  } else if (!std::isfinite(number.high) || !std::isfinite(number.low)) {
    return refused();
  }
  return number;
}

}  // namespace assay::stats
