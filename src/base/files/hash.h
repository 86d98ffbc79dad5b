// SHA-256, by OpenSSL.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace assay {

// Streaming SHA-256; finish() may be called once.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;
  void update(std::span<const std::byte> bytes);
  void update(std::string_view text);
  std::string finish_hex();  // 64 lower-case hex digits

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string sha256_hex(std::string_view text);

struct FileDigest {
  uint64_t size_bytes = 0;
  std::string sha256;

  friend bool operator==(const FileDigest&, const FileDigest&) = default;
};
// Digest of an open file, from its start to its end, wherever its offset is; `path` names it in
// errors. Streams: its size doesn't matter. environment_error: a read fails.
Result<FileDigest> digest_file(int fd, const std::filesystem::path& path);
// Hash of a regular file: the errors of open_regular() (base/files/files.h) and digest_file().
Result<std::string> sha256_file_hex(const std::filesystem::path& path);

// Hash of a token sequence as a sample's `output_hash`: first 16 hex digits of the SHA-256 of the
// ids as little-endian int32.
std::string token_hash(std::span<const int32_t> tokens);

}  // namespace assay
