// Byte-pair encoding of one word: characters to ids by merges in order of rank.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace assay::engine {

class BytePairEncoder {
 public:
  struct Merge {
    int32_t left = 0;
    int32_t right = 0;
    int32_t result = 0;
    bool ties = false;  // has the rank of the merge before it: of these the leftmost goes first
  };

  // The file's model, in ids. Earlier merges go first; a pair that comes twice has the later rank,
  // as in the `tokenizers` package.
  struct Model {
    std::unordered_map<char32_t, int32_t> char_ids;
    // byte_fallback: ids of "<0x00>" to "<0xFF>", for the bytes of a character that has no id.
    std::array<std::optional<int32_t>, 256> byte_ids;
    std::vector<Merge> merges;
    std::unordered_map<std::string, int32_t> words;  // ignore_merges: whole words; else empty
    // For a character that has no id, and not one for each byte; absent: such are dropped.
    std::optional<int32_t> unknown;
    bool fuse_unknown = false;  // a run of unknown characters gives one id
  };

  explicit BytePairEncoder(Model model);

  // Appends the ids of a word, which must be valid UTF-8: O(n log n) in its bytes.
  void encode(std::string_view word, std::vector<int32_t>& ids) const;

 private:
  struct Target {
    uint32_t rank = 0;
    int32_t result = 0;
  };
  struct Symbol {
    int32_t id = 0;
    uint32_t previous = 0;
    uint32_t next = 0;
    bool gone = false;
  };

  std::vector<Symbol> split_chars(std::string_view word) const;
  bool append_bytes(std::string_view character, std::vector<Symbol>& symbols) const;
  void merge_all(std::vector<Symbol>& symbols) const;
  const Target* find(int32_t left, int32_t right) const;

  Model model_;
  std::unordered_map<uint64_t, Target> targets_;  // by left << 32 | right
};

}  // namespace assay::engine
