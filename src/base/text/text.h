// Small text questions: the nearest known word, joined lists, human-readable quantities.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

// The candidate with the smallest edit distance to `word`, if that is close enough to be a typing
// error (at most a third of the word's length, at least 1); for "did you mean".
std::optional<std::string> nearest_word(std::string_view word,
                                        std::span<const std::string> candidates);

// ` (did you mean "x"?)`, or nothing.
std::string nearest_hint(std::string_view word, std::span<const std::string> candidates);

// Text from outside for an error's one line: as shown_line() (base/text/shown_text.h), and cut with
// "..." beyond 60 bytes.
std::string excerpt(std::string_view text);
// The same in double quotes.
std::string quoted_excerpt(std::string_view text);

std::string join(std::span<const std::string> parts, std::string_view separator);
std::vector<std::string> split(std::string_view text, char separator);

// "1 row", "2 rows", "3 strata": `many` where an "s" doesn't make the plural.
std::string counted(int64_t count, std::string_view one, std::string_view many = "");

// "1.50 GB", "320 B": powers of 1000.
std::string format_bytes(double bytes);
// "2 h 05 min", "3 min 20 s", "12.3 s", "45 ms".
std::string format_duration(double seconds);
// `digits` significant digits, without an exponent where it reads better: 0.00123, 12.3, 1230.
std::string format_significant(double value, int digits = 4);

}  // namespace assay
