// Text by the columns that a terminal gives it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace assay {

// Columns a terminal gives to the text: its characters, each counted as one.
size_t display_width(std::string_view text);
// The bytes of the characters that fit so many columns.
size_t bytes_of_columns(std::string_view text, size_t columns);

// The name in at most `width` columns (4 at least): "..." takes the place of its middle.
std::string shortened(std::string_view name, size_t width);

}  // namespace assay
