// Stored blocks of RFC 1951, and the checksum of RFC 1952.
#include "base/gzip.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace assay {
namespace {

constexpr std::array<uint32_t, 256> kCrcTable = [] {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value & 1) ? 0xedb88320u ^ (value >> 1) : value >> 1;
    table[i] = value;
  }
  return table;
}();

uint32_t crc32(std::string_view content) {
  uint32_t crc = 0xffffffffu;
  for (const char byte : content) {
    crc = kCrcTable[(crc ^ static_cast<unsigned char>(byte)) & 0xff] ^ (crc >> 8);
  }
  return crc ^ 0xffffffffu;
}

void put(std::string& text, uint32_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) text += static_cast<char>((value >> (8 * i)) & 0xff);
}

}  // namespace

std::string gzip_stored(std::string_view content) {
  constexpr size_t kMostInBlock = 65'535;
  std::string file("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff", 10);
  size_t at = 0;
  do {
    const size_t size = std::min(kMostInBlock, content.size() - at);
    const bool last = at + size == content.size();
    file += static_cast<char>(last ? 1 : 0);
    put(file, static_cast<uint32_t>(size), 2);
    put(file, ~static_cast<uint32_t>(size), 2);
    file += content.substr(at, size);
    at += size;
  } while (at < content.size());
  put(file, crc32(content), 4);
  put(file, static_cast<uint32_t>(content.size()), 4);
  return file;
}

}  // namespace assay
