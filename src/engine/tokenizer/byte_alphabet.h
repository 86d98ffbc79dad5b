// The 256 printable characters that stand for bytes in a byte-level vocabulary (GPT-2's
// bytes_to_unicode).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace assay::engine {

// Bytes in the order of GPT-2's first 256 ids: those that print as themselves, then the others,
// which take the characters from U+0100 on.
std::array<uint8_t, 256> bytes_in_vocabulary_order();

// The character of a byte, as UTF-8: ' ' is "Ġ", 'a' is "a".
const std::string& byte_symbol(uint8_t byte);

// Every byte of the text as its character.
std::string symbols_of_bytes(std::string_view bytes);

// The bytes that a token's text stands for; absent if a character of it is outside the alphabet, or
// the text isn't UTF-8.
std::optional<std::string> bytes_of_symbols(std::string_view token);

}  // namespace assay::engine
