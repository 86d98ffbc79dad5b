// Files in gzip's format: written for readers that expect it, and read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace assay {

// A gzip file (RFC 1952) whose content stands in it as it is, uncompressed: nothing to link, and
// 5 bytes more for each 64 kB.
std::string gzip_stored(std::string_view content);

// The content of a gzip file. bad_input that names `object`: another format, a damaged file, or one
// whose content is larger than `most_bytes`, of which no more than that is unpacked.
Result<std::string> gunzip(std::string_view file, uint64_t most_bytes, std::string_view object);

}  // namespace assay
