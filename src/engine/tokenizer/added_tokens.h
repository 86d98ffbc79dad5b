// Tokens that are cut out of the text before anything else sees it: special tokens and user
// additions.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace assay::engine {

struct AddedToken {
  int32_t id = 0;
  std::string content;
  bool special = false;      // left out by decode(skip_special_tokens)
  bool single_word = false;  // only between characters that aren't of a word
  bool lstrip = false;       // takes the white space before it, too
  bool rstrip = false;
  bool normalized = true;  // looked for in the normalised text
};

// Either an added token or text between them.
struct Segment {
  std::string_view text;
  int32_t id = -1;  // -1: text
};

// Finds tokens of a fixed set: leftmost first, of those the longest, without overlap.
class AddedTokenFinder {
 public:
  AddedTokenFinder() = default;
  // Tokens without content are never found.
  explicit AddedTokenFinder(std::vector<AddedToken> tokens);

  // Appends the text's segments, none of them empty text. The views are into `text`, valid UTF-8.
  void cut(std::string_view text, std::vector<Segment>& segments) const;

 private:
  const AddedToken* match_at(std::string_view text, size_t at) const;

  std::vector<AddedToken> tokens_;                        // longest first
  std::array<std::vector<uint32_t>, 256> by_first_byte_;  // indices into tokens_, longest first
};

}  // namespace assay::engine
