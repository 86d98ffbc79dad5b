// Widths are columns of a terminal, not bytes: East Asian characters take two, accents none.
#include "base/text/fit_text.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>

namespace assay {
namespace {

constexpr size_t kShortest = 4;

struct Character {
  size_t bytes = 1;
  size_t columns = 1;
};

// The first one of a text that isn't empty; a byte that begins none takes one column.
Character first_character(std::string_view text) {
  utf8proc_int32_t code_point = 0;
  const auto bytes = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                      static_cast<utf8proc_ssize_t>(text.size()), &code_point);
  if (bytes <= 0) return {};
  return {static_cast<size_t>(bytes), static_cast<size_t>(utf8proc_charwidth(code_point))};
}

}  // namespace

size_t display_width(std::string_view text) {
  size_t columns = 0;
  while (!text.empty()) {
    const Character next = first_character(text);
    columns += next.columns;
    text.remove_prefix(next.bytes);
  }
  return columns;
}

size_t bytes_of_columns(std::string_view text, size_t columns) {
  size_t at = 0;
  while (at < text.size()) {
    const Character next = first_character(text.substr(at));
    if (next.columns > columns) break;
    columns -= next.columns;
    at += next.bytes;
  }
  return at;
}

std::string shortened(std::string_view name, size_t width) {
  constexpr std::string_view kDots = "...";
  width = std::max(width, kShortest);
  const size_t whole = display_width(name);
  if (whole <= width) return std::string(name);
  const size_t kept = width - kDots.size();
  const size_t head = (kept + 1) / 2;
  const size_t tail = kept - head;
  size_t end = bytes_of_columns(name, whole - tail);
  while (display_width(name.substr(end)) > tail) end += first_character(name.substr(end)).bytes;
  return fmt::format("{}{}{}", name.substr(0, bytes_of_columns(name, head)), kDots,
                     name.substr(end));
}

}  // namespace assay
