// Files in gzip's format for readers that expect it.
#pragma once

#include <string>
#include <string_view>

namespace assay {

// A gzip file (RFC 1952) whose content stands in it as it is, uncompressed: nothing to link, and
// 5 bytes more for each 64 kB.
std::string gzip_stored(std::string_view content);

}  // namespace assay
