// Stored blocks of RFC 1951, and the checksum of RFC 1952; zlib unpacks other programs' files.
#include "base/files/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>

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

uint32_t checksum(std::string_view content) {
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
  put(file, checksum(content), 4);
  put(file, static_cast<uint32_t>(content.size()), 4);
  return file;
}

Result<std::string> gunzip(std::string_view file, uint64_t most_bytes, std::string_view object) {
  constexpr int kGzipAlone = 15 + 16;
  constexpr size_t kPiece = size_t{1} << 18;
  z_stream stream{};
  if (::inflateInit2(&stream, kGzipAlone) != Z_OK) {
    return environment_error("{}: expected memory to unpack it, found none", object);
  }
  const std::unique_ptr<z_stream, decltype(&::inflateEnd)> closed(&stream, &::inflateEnd);
  std::string input(file);  // zlib's input isn't const
  stream.next_in = reinterpret_cast<Bytef*>(input.data());
  stream.avail_in = static_cast<uInt>(input.size());
  std::string content;
  int state = Z_OK;
  while (state == Z_OK) {
    const size_t before = content.size();
    content.resize(before + kPiece);
    stream.next_out = reinterpret_cast<Bytef*>(content.data() + before);
    stream.avail_out = static_cast<uInt>(kPiece);
    state = ::inflate(&stream, Z_NO_FLUSH);
    content.resize(content.size() - stream.avail_out);
    if (content.size() > most_bytes) {
      return bad_input("{}: expected at most {} bytes unpacked, found more", object, most_bytes);
    }
  }
  if (state != Z_STREAM_END) {
    return bad_input("{}: expected a whole gzip file, found a damaged one", object);
  }
  return content;
}

}  // namespace assay
