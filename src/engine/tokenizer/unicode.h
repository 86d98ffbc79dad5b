// The little Unicode that a tokenizer needs: UTF-8 both ways, NFC, and two character classes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace assay::engine {

// One character, or one maximal run of bytes that can't be part of any (Unicode 15, table 3-8):
// decoders replace it by one U+FFFD.
struct Utf8Char {
  char32_t code = 0xFFFD;
  size_t size = 0;  // bytes taken, at least 1
  bool valid = false;
  bool truncated = false;  // not valid, but bytes after the end of the text could make it so
};

// at < text.size().
Utf8Char read_utf8(std::string_view text, size_t at);

void append_utf8(std::string& text, char32_t code);

// The text with every malformed run replaced by U+FFFD.
std::string repair_utf8(std::string_view text);

// Normalization form C. The text must be valid UTF-8. Fails only for want of memory.
Result<std::string> normalize_nfc(std::string_view text);

// The classes \s and \w of the regular expressions that tokenizers of this format are defined by:
// White_Space, and Alphabetic, Mark, Decimal_Number, Connector_Punctuation or Join_Control (UTS 18,
// annex C).
bool is_white_space(char32_t code);
bool is_word_char(char32_t code);

}  // namespace assay::engine
