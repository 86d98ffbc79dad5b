// Text from outside (names in a study or a bundle, a worker's words, a file's content) made safe to
// show: the one place that escapes and cuts text for a terminal, Markdown, HTML or SVG.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace assay {

// Bytes of a whole line such as an error's, and of one cell of a table.
inline constexpr size_t kLongestLine = 4000;
inline constexpr size_t kLongestCell = 1000;

// One line that a terminal shows and doesn't obey. Escapes (\n, \x1b, \u202e) stand for control
// characters (C0, DEL, C1), for characters that break or reorder lines, and (\xff) for bytes that
// aren't UTF-8. Text that would be longer than `most_bytes` is cut there, between characters, and
// "..." is put behind it.
std::string shown_line(std::string_view text, size_t most_bytes = kLongestLine);

// The same for Markdown: the result ends no table cell, and begins no tag, link or
// picture.
std::string markdown_line(std::string_view text, size_t most_bytes = kLongestLine);

// The same for HTML and SVG, within an element or a quoted attribute: the result begins no tag or
// entity, and ends no attribute.
std::string html_text(std::string_view text, size_t most_bytes = kLongestLine);

// JSON text with \u escapes in the place of those characters above that JSON itself allows in a
// string: the same values to every reader.
std::string escaped_json(std::string json);

}  // namespace assay
