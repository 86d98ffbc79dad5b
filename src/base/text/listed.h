// Names and clauses in a row, as a sentence has them.
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <string>

namespace assay {

// "A", "A and B", "A, B and C"; of more than `most` parts (at least 1) the last that is shown gives
// way to the number of those left out: "A, B and 3 more". Empty where there are no parts.
std::string listed(std::span<const std::string> parts,
                   size_t most = std::numeric_limits<size_t>::max());

// The first parts, for lists that are no clause of a sentence: "A, B, C"; of more than `most` parts
// "A, B and 3 more", where `most` are shown.
std::string first_listed(std::span<const std::string> parts, size_t most);

}  // namespace assay
