// UTF-8 by hand (Unicode 15, table 3-7); normalisation and categories by utf8proc.
#include "engine/tokenizer/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

namespace assay::engine {
namespace {

struct Lead {
  size_t size = 0;           // of the whole sequence; 0: no sequence starts so
  unsigned char low = 0x80;  // bounds of the second byte
  unsigned char high = 0xBF;
};

Lead classify_lead(unsigned char byte) {
  if (byte < 0x80) return {1};
  if (byte < 0xC2) return {0};
  if (byte < 0xE0) return {2};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0};
}

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

}  // namespace

Utf8Char read_utf8(std::string_view text, size_t at) {
  const auto byte_at = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte_at(at);
  const Lead lead = classify_lead(first);
  if (lead.size == 1) return {first, 1, true, false};
  if (lead.size == 0) return {0xFFFD, 1, false, false};
  char32_t code = first & (0x7Fu >> lead.size);
  for (size_t i = 1; i < lead.size; ++i) {
    if (at + i == text.size()) return {0xFFFD, i, false, true};
    const unsigned char next = byte_at(at + i);
    const unsigned char low = i == 1 ? lead.low : 0x80;
    const unsigned char high = i == 1 ? lead.high : 0xBF;
    if (next < low || next > high) return {0xFFFD, i, false, false};
    code = (code << 6) | (next & 0x3Fu);
  }
  return {code, lead.size, true, false};
}

void append_utf8(std::string& text, char32_t code) {
  const auto add = [&](char32_t byte) { text += static_cast<char>(byte); };
  if (code < 0x80) {
    add(code);
  } else if (code < 0x800) {
    add(0xC0 | (code >> 6));
    add(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    add(0xE0 | (code >> 12));
    add(0x80 | ((code >> 6) & 0x3F));
    add(0x80 | (code & 0x3F));
  } else {
    add(0xF0 | (code >> 18));
    add(0x80 | ((code >> 12) & 0x3F));
    add(0x80 | ((code >> 6) & 0x3F));
    add(0x80 | (code & 0x3F));
  }
}

std::string repair_utf8(std::string_view text) {
  std::string repaired;
  repaired.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const Utf8Char c = read_utf8(text, i);
    if (c.valid) {
      repaired.append(text, i, c.size);
    } else {
      append_utf8(repaired, 0xFFFD);
    }
    i += c.size;
  }
  return repaired;
}

Result<std::string> normalize_nfc(std::string_view text) {
  const auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  if (std::all_of(text.begin(), text.end(), is_ascii)) return std::string(text);
  utf8proc_uint8_t* raw = nullptr;
  const auto size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), &raw,
                   static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  const std::unique_ptr<utf8proc_uint8_t, Free> owner(raw);
  if (size < 0) {
    return environment_error("normalization of {} bytes of text: expected success, found: {}",
                             text.size(), utf8proc_errmsg(size));
  }
  return std::string(reinterpret_cast<const char*>(raw), static_cast<size_t>(size));
}

bool is_white_space(char32_t code) {
  if (code >= 0x09 && code <= 0x0D) return true;
  if (code == 0x85) return true;
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(code));
  return category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL ||
         category == UTF8PROC_CATEGORY_ZP;
}

bool is_word_char(char32_t code) {
  if (code == 0x200C || code == 0x200D) return true;  // Join_Control
  // Other_Alphabetic beyond marks: enclosed letters, whose category is So.
  if ((code >= 0x24B6 && code <= 0x24E9) || (code >= 0x1F130 && code <= 0x1F149) ||
      (code >= 0x1F150 && code <= 0x1F169) || (code >= 0x1F170 && code <= 0x1F189)) {
    return true;
  }
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      return false;
  }
}

}  // namespace assay::engine
