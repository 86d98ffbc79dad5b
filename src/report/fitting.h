// Text made to fit a given number of columns: shortened names and wrapped lines.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/fit_text.h"

namespace assay {

// shortened() for names that have to stay apart: those that would read alike end in "...#2", their
// place in `names`.
std::vector<std::string> shortened_apart(std::span<const std::string> names, size_t width);

// Lines of at most `width` columns, broken at spaces; a word that is longer is broken too. Lines
// after the first begin with `indent` spaces.
std::vector<std::string> wrapped_lines(std::string_view text, size_t width, size_t indent);

// The same in at most `most` lines; the rest gives way to "..." behind the last one.
std::vector<std::string> wrapped_lines(std::string_view text, size_t width, size_t indent,
                                       size_t most);

}  // namespace assay
