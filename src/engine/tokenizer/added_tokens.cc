// The search for added tokens, with the rules of the `tokenizers` package's
// AddedVocabulary::find_matches.
#include "engine/tokenizer/added_tokens.h"

#include <algorithm>
#include <utility>

#include "engine/tokenizer/unicode.h"

namespace assay::engine {
namespace {

// Start of the last character before `at`; at > 0, the text is valid UTF-8.
size_t previous_char(std::string_view text, size_t at) {
  do {
    --at;
  } while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80);
  return at;
}

bool word_ends_at(std::string_view text, size_t at) {
  return at > 0 && is_word_char(read_utf8(text, previous_char(text, at)).code);
}

bool word_starts_at(std::string_view text, size_t at) {
  return at < text.size() && is_word_char(read_utf8(text, at).code);
}

// The begin of the white space before `at`, not before `floor`.
size_t skip_space_back(std::string_view text, size_t at, size_t floor) {
  while (at > floor) {
    const size_t previous = previous_char(text, at);
    if (!is_white_space(read_utf8(text, previous).code)) break;
    at = previous;
  }
  return at;
}

size_t skip_space(std::string_view text, size_t at) {
  while (at < text.size()) {
    const Utf8Char c = read_utf8(text, at);
    if (!is_white_space(c.code)) break;
    at += c.size;
  }
  return at;
}

}  // namespace

AddedTokenFinder::AddedTokenFinder(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  std::sort(tokens_.begin(), tokens_.end(), [](const AddedToken& a, const AddedToken& b) {
    return std::pair(b.content.size(), a.id) < std::pair(a.content.size(), b.id);
  });
  for (uint32_t i = 0; i < tokens_.size(); ++i) {
    if (tokens_[i].content.empty()) continue;
    by_first_byte_[static_cast<unsigned char>(tokens_[i].content[0])].push_back(i);
  }
}

const AddedToken* AddedTokenFinder::match_at(std::string_view text, size_t at) const {
  for (const uint32_t i : by_first_byte_[static_cast<unsigned char>(text[at])]) {
    if (text.substr(at).starts_with(tokens_[i].content)) return &tokens_[i];
  }
  return nullptr;
}

void AddedTokenFinder::cut(std::string_view text, std::vector<Segment>& segments) const {
  size_t done = 0;  // up to here the text is cut
  for (size_t at = 0; at < text.size();) {
    const AddedToken* token = match_at(text, at);
    if (!token) {
      ++at;
      continue;
    }
    size_t begin = at;
    size_t end = at + token->content.size();
    at = end;
    if (token->single_word && (word_ends_at(text, begin) || word_starts_at(text, end))) continue;
    if (token->lstrip) begin = std::max(done, skip_space_back(text, begin, std::min(done, begin)));
    if (token->rstrip) end = skip_space(text, end);
    if (done < begin) segments.push_back({text.substr(done, begin - done)});
    segments.push_back({{}, token->id});
    done = end;
  }
  if (done < text.size()) segments.push_back({text.substr(done)});
}

}  // namespace assay::engine
