// Prompts that no cache of a server can know: each begins with tokens of its own.
#pragma once

#include <cstdint>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "backend/http/dialect.h"

namespace assay {

// Tokens at the beginning of a prompt that differ in each one: ten of 100 words, or four of a
// vocabulary of thousands of ids, come twice in no run.
inline constexpr int64_t kUniqueIds = 4;
inline constexpr int64_t kUniqueWords = 10;

class HttpPrompts {
 public:
  explicit HttpPrompts(uint64_t seed) : random_(seed) {}

  // These ids with others in the place of the first kUniqueIds: drawn from those below `vocab_size`
  // that aren't special.
  std::vector<int32_t> unique_ids(std::span<const int32_t> ids, int64_t vocab_size,
                                  const std::vector<int32_t>& special);
  // Ids, all of them drawn so.
  std::vector<int32_t> drawn_ids(int64_t count, int64_t vocab_size,
                                 const std::vector<int32_t>& special);
  // So many words, each of which is one token in nearly every vocabulary, the first kUniqueWords by
  // chance and the rest always the same.
  std::string words(int64_t count);

 private:
  void draw(std::span<int32_t> ids, int64_t vocab_size, const std::vector<int32_t>& special);

  std::mt19937_64 random_;
};

}  // namespace assay
