// SHA-256, by OpenSSL.
#include "base/hash.h"

#include <openssl/evp.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

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
  std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (!file) {
    return bad_input("{}: expected a readable file, found: {}", path.string(),
                     std::strerror(errno));
  }
  Sha256 hash;
  std::vector<std::byte> block(1 << 16);
  while (size_t n = std::fread(block.data(), 1, block.size(), file.get())) {
    hash.update(std::span(block).first(n));
  }
  if (std::ferror(file.get())) {
    return environment_error("{}: expected to read the whole file, found: {}", path.string(),
                             std::strerror(errno));
  }
  return hash.finish_hex();
}

std::string token_hash(std::span<const int32_t> tokens) {
  Sha256 hash;
  hash.update(std::as_bytes(tokens));
  return hash.finish_hex().substr(0, 16);
}

}  // namespace assay
