#include "base/files/hash.h"

#include <gtest/gtest.h>

#include "base/files/files.h"

namespace assay {
namespace {

// FIPS 180-4's examples.
TEST(Hash, KnowsThePublishedDigests) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Hash, StreamsAndFilesAgreeWithTheWhole) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += static_cast<char>(i * 7 + i / 256);
  Sha256 hash;
  for (size_t at = 0, step = 1; at < text.size(); at += step, step = step * 2 + 1) {
    hash.update(std::string_view(text).substr(at, step));
  }
  EXPECT_EQ(hash.finish_hex(), sha256_hex(text));
  const std::string path = testing::TempDir() + "hash_test.bin";
  ASSERT_TRUE(write_file(path, text));
  EXPECT_EQ(sha256_file_hex(path), sha256_hex(text));
}

TEST(Hash, AMovedHashGoesOn) {
  Sha256 first;
  first.update("ab");
  Sha256 second = std::move(first);
  second.update("c");
  EXPECT_EQ(second.finish_hex(), sha256_hex("abc"));
}

TEST(Hash, WhatCannotBeReadIsAnError) {
  EXPECT_FALSE(sha256_file_hex("/no/such/file"));
  EXPECT_FALSE(sha256_file_hex("/")) << "a folder opens, but doesn't read";
}

TEST(Hash, TokensHashAsLittleEndianIntegers) {
  const int32_t tokens[] = {1, -2};
  EXPECT_EQ(token_hash(tokens),
            sha256_hex(std::string("\1\0\0\0\xfe\xff\xff\xff", 8)).substr(0, 16));
  EXPECT_EQ(token_hash({}), "e3b0c44298fc1c14");
}

}  // namespace
}  // namespace assay
