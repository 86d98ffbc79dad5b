// SHA-256, by OpenSSL.
#include "base/files/hash.h"

#include <openssl/evp.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/files/files.h"

namespace assay {

static_assert(std::endian::native == std::endian::little, "token_hash and safetensors assume it");

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr);
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(std::span<const std::byte> bytes) {
  EVP_DigestUpdate(state_->context, bytes.data(), bytes.size());
}

void Sha256::update(std::string_view text) {
  update(std::as_bytes(std::span(text.data(), text.size())));
}

std::string Sha256::finish_hex() {
  std::array<unsigned char, 32> digest{};
  EVP_DigestFinal_ex(state_->context, digest.data(), nullptr);
  std::string hex;
  for (unsigned char byte : digest) hex += fmt::format("{:02x}", byte);
  return hex;
}

std::string sha256_hex(std::string_view text) {
  Sha256 hash;
  hash.update(text);
  return hash.finish_hex();
}

Result<std::string> sha256_file_hex(const std::filesystem::path& path) {
  ASSAY_TRY(const Descriptor file, open_regular(path));
  ASSAY_TRY(FileDigest digest, digest_file(file.get(), path));
  return std::move(digest.sha256);
}

Result<FileDigest> digest_file(int fd, const std::filesystem::path& path) {
  Sha256 hash;
  FileDigest digest;
  std::vector<std::byte> block(1 << 16);
  while (true) {
    const ssize_t n =
        ::pread(fd, block.data(), block.size(), static_cast<off_t>(digest.size_bytes));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      return environment_error("{}: expected to read the whole file, found: {}", path.string(),
                               std::strerror(errno));
    }
    if (n == 0) break;
    hash.update(std::span(block).first(static_cast<size_t>(n)));
    digest.size_bytes += static_cast<uint64_t>(n);
  }
  digest.sha256 = hash.finish_hex();
  return digest;
}

std::string token_hash(std::span<const int32_t> tokens) {
  Sha256 hash;
  hash.update(std::as_bytes(tokens));
  return hash.finish_hex().substr(0, 16);
}

}  // namespace assay
