// Shortening and wrapping, by characters, not bytes.
#include "report/fitting.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/text.h"

namespace assay {
namespace {

constexpr std::string_view kEllipsis = "...";
std::string_view first_characters(std::string_view text, size_t columns) {
  return text.substr(0, bytes_of_columns(text, columns));
}

}  // namespace

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
    // A word that no line holds is broken anyway: from where it stands.
    const bool broken = display_width(word) > width - indent && display_width(line) + 1 < width;
    if (!empty && !broken && display_width(line) + 1 + display_width(word) > width) end_line();
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
