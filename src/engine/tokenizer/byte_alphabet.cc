// GPT-2's byte alphabet: printable Latin-1 stands for itself, the other bytes for U+0100 to U+0143.
#include "engine/tokenizer/byte_alphabet.h"

#include "engine/tokenizer/unicode.h"

namespace assay::engine {
namespace {

constexpr char32_t kFirstSubstitute = 0x100;

bool stands_for_itself(unsigned byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct Alphabet {
  std::array<uint8_t, 256> order{};
  std::array<std::string, 256> symbols;
  std::array<int16_t, kFirstSubstitute + 68> bytes{};  // by code point; -1: not of the alphabet

  Alphabet() {
    bytes.fill(-1);
    size_t place = 0;
    for (unsigned byte = 0; byte < 256; ++byte) {
      if (stands_for_itself(byte)) add(place++, byte, byte);
    }
    char32_t substitute = kFirstSubstitute;
    for (unsigned byte = 0; byte < 256; ++byte) {
      if (!stands_for_itself(byte)) add(place++, byte, substitute++);
    }
  }

  void add(size_t place, unsigned byte, char32_t symbol) {
    order[place] = static_cast<uint8_t>(byte);
    append_utf8(symbols[byte], symbol);
    bytes[symbol] = static_cast<int16_t>(byte);
  }
};

const Alphabet& alphabet() {
  static const Alphabet instance;
  return instance;
}

}  // namespace

std::array<uint8_t, 256> bytes_in_vocabulary_order() {
  return alphabet().order;
}

const std::string& byte_symbol(uint8_t byte) {
  return alphabet().symbols[byte];
}

std::string symbols_of_bytes(std::string_view bytes) {
  std::string symbols;
  symbols.reserve(bytes.size() * 2);
  for (const char byte : bytes) symbols += byte_symbol(static_cast<uint8_t>(byte));
  return symbols;
}

std::optional<std::string> bytes_of_symbols(std::string_view token) {
  const auto& table = alphabet().bytes;
  std::string bytes;
  bytes.reserve(token.size());
  for (size_t i = 0; i < token.size();) {
    const Utf8Char c = read_utf8(token, i);
    if (!c.valid || c.code >= table.size() || table[c.code] < 0) return std::nullopt;
    bytes += static_cast<char>(table[c.code]);
    i += c.size;
  }
  return bytes;
}

}  // namespace assay::engine
