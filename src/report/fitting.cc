// Shortening and wrapping, by characters, not bytes.
#include "report/fitting.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace assay {
namespace {

constexpr std::string_view kEllipsis = "...";
constexpr size_t kLeastWidth = 4;

bool continues_character(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

// The bytes of the first so many characters.
size_t bytes_of(std::string_view text, size_t characters) {
  size_t at = 0;
  for (size_t taken = 0; at < text.size(); ++at) {
    if (continues_character(text[at])) continue;
    if (taken == characters) break;
    ++taken;
  }
  return at;
}

std::string_view first_characters(std::string_view text, size_t characters) {
  return text.substr(0, bytes_of(text, characters));
}

std::string_view last_characters(std::string_view text, size_t characters) {
  const size_t width = display_width(text);
  return width <= characters ? text : text.substr(bytes_of(text, width - characters));
}

}  // namespace

size_t display_width(std::string_view text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return !continues_character(c); }));
}

std::string shortened(std::string_view name, size_t width) {
  width = std::max(width, kLeastWidth);
  if (display_width(name) <= width) return std::string(name);
  const size_t kept = width - kEllipsis.size();
  const size_t head = (kept + 1) / 2;
  return fmt::format("{}{}{}", first_characters(name, head), kEllipsis,
                     last_characters(name, kept - head));
}

std::vector<std::string> shortened_apart(std::span<const std::string> names, size_t width) {
  std::vector<std::string> all;
  for (const std::string& name : names) all.push_back(shortened(name, width));
  const std::vector<std::string> before = all;
  for (size_t i = 0; i < all.size(); ++i) {
    if (std::ranges::count(before, before[i]) == 1) continue;
    const std::string number = fmt::format("{}#{}", kEllipsis, i + 1);
    const size_t head = width - std::min(width, display_width(number));
    all[i] = std::string(first_characters(names[i], head)) + number;
  }
  return all;
}

std::vector<std::string> wrapped_lines(std::string_view text, size_t width, size_t indent) {
  std::vector<std::string> lines;
  std::string line;
  bool empty = true;
  const auto end_line = [&] {
    lines.push_back(std::move(line));
    line = std::string(indent, ' ');
    empty = true;
  };
  for (std::string_view word : split(text, ' ')) {
    if (!empty && display_width(line) + 1 + display_width(word) > width) end_line();
    if (!empty) line += ' ';
    while (display_width(line) + display_width(word) > width) {
      const std::string_view fits = first_characters(word, width - display_width(line));
      line += fits;
      word.remove_prefix(fits.size());
      end_line();
    }
    line += word;
    empty = false;
  }
  lines.push_back(std::move(line));
  return lines;
}

std::vector<std::string> wrapped_lines(std::string_view text, size_t width, size_t indent,
                                       size_t most) {
  std::vector<std::string> lines = wrapped_lines(text, width, indent);
  if (lines.size() <= most) return lines;
  lines.resize(most);
  std::string& last = lines.back();
  last = first_characters(last, width - kEllipsis.size());
  while (last.ends_with(' ')) last.pop_back();
  last += kEllipsis;
  return lines;
}

}  // namespace assay
