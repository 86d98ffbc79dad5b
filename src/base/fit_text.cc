// By characters, not bytes.
#include "base/fit_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay {
namespace {

constexpr size_t kShortest = 4;

bool continues_character(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

}  // namespace

size_t display_width(std::string_view text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return !continues_character(c); }));
}

size_t bytes_of_characters(std::string_view text, size_t characters) {
  size_t at = 0;
  for (size_t taken = 0; at < text.size(); ++at) {
    if (continues_character(text[at])) continue;
    if (taken == characters) break;
    ++taken;
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
  return fmt::format("{}{}{}", name.substr(0, bytes_of_characters(name, head)), kDots,
                     name.substr(bytes_of_characters(name, whole - (kept - head))));
}

}  // namespace assay
