// Escapes, character by character.
#include "base/text/shown_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace assay {
namespace {

// A character as it stands in the text; size 1 and `valid` false for a byte that isn't UTF-8.
struct Decoded {
  uint32_t code = 0;
  size_t size = 1;
  bool valid = false;
};

Decoded read_character(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {first, 1, true};
  const size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < size) return {};
  uint32_t code = first & (0xFFu >> (size + 1));
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3Fu);
  }
  constexpr std::array<uint32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (code < kLeast[size] || code > 0x10FFFF || surrogate) return {};
  return {code, size, true};
}

// True for controls, and for characters that change the order or the number of the lines shown.
bool is_obeyed(uint32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x061C ||
         (code >= 0x200E && code <= 0x200F) || (code >= 0x2028 && code <= 0x202E) ||
         (code >= 0x2066 && code <= 0x2069) || code == 0xFEFF;
}

std::string escaped(uint32_t code) {
  switch (code) {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      return code < 0x100 ? fmt::format("\\x{:02x}", code) : fmt::format("\\u{:04x}", code);
  }
}

// The entity for a character that Markdown would take as the end of a cell, or the start of a tag,
// link or picture. Entities, because a backslash doesn't escape behind another.
std::string_view markdown_entity(std::string_view rest, char before) {
  const char c = rest.front();
  if (c == '|') return "&#124;";
  if (c == '(' && before == ']') return "&#40;";
  if (c == '<' && rest.size() > 1) {
    const char next = rest[1];
    const bool letter = (next >= 'a' && next <= 'z') || (next >= 'A' && next <= 'Z');
    if (letter || next == '/' || next == '!' || next == '?') return "&lt;";
  }
  return {};
}

// The entity for a character that would end an element's text or a quoted attribute.
std::string_view html_entity(std::string_view rest, char) {
  switch (rest.front()) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    default:
      return {};
  }
}

std::string_view no_entity(std::string_view, char) {
  return {};
}

// The text that stands for the character at the front of `rest`; empty: itself.
using Entity = std::string_view (*)(std::string_view rest, char before);

std::string shown(std::string_view text, size_t most_bytes, Entity entity_of) {
  std::string out;
  char before = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const Decoded character = read_character(rest);
    std::string piece(rest.substr(0, character.size));
    if (!character.valid) {
      piece = fmt::format("\\x{:02x}", static_cast<unsigned char>(rest.front()));
    } else if (is_obeyed(character.code)) {
      piece = escaped(character.code);
    } else if (const std::string_view entity = entity_of(rest, before); !entity.empty()) {
      piece = entity;
    }
    if (out.size() + piece.size() > most_bytes) return out + "...";
    out += piece;
    before = rest.front();
    rest.remove_prefix(character.size);
  }
  return out;
}

}  // namespace

std::string escaped_json(std::string json) {
  const auto is_plain = [](char c) { return static_cast<unsigned char>(c) < 0x7F; };
  if (std::ranges::all_of(json, is_plain)) return json;
  std::string out;
  out.reserve(json.size());
  for (std::string_view rest = json; !rest.empty();) {
    const Decoded character = read_character(rest);
    const bool escape = character.code >= 0x7F && is_obeyed(character.code);
    if (escape) {
      out += fmt::format("\\u{:04x}", character.code);
    } else {
      out += rest.substr(0, character.size);
    }
    rest.remove_prefix(character.size);
  }
  return out;
}

std::string shown_line(std::string_view text, size_t most_bytes) {
  return shown(text, most_bytes, no_entity);
}

std::string markdown_line(std::string_view text, size_t most_bytes) {
  return shown(text, most_bytes, markdown_entity);
}

std::string html_text(std::string_view text, size_t most_bytes) {
  return shown(text, most_bytes, html_entity);
}

}  // namespace assay
