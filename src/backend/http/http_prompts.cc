// Unique beginnings of prompts.
#include "backend/http/http_prompts.h"

#include <algorithm>
#include <array>
#include <climits>
#include <cstdint>
#include <string_view>

namespace assay {
namespace {

constexpr std::array<std::string_view, 100> kWords = {
    "the",    "of",      "and",   "to",    "in",      "is",   "that",   "for",   "it",     "was",
    "with",   "be",      "by",    "on",    "not",     "he",   "this",   "are",   "or",     "his",
    "from",   "at",      "which", "but",   "have",    "an",   "had",    "they",  "you",    "were",
    "their",  "one",     "all",   "we",    "can",     "her",  "has",    "there", "been",   "if",
    "more",   "when",    "will",  "would", "who",     "so",   "no",     "she",   "other",  "its",
    "may",    "these",   "what",  "them",  "than",    "some", "him",    "time",  "into",   "only",
    "do",     "such",    "could", "new",   "about",   "then", "out",    "our",   "two",    "any",
    "first",  "like",    "made",  "after", "also",    "did",  "many",   "must",  "before", "back",
    "see",    "through", "way",   "where", "get",     "much", "go",     "well",  "your",   "know",
    "should", "down",    "work",  "year",  "because", "come", "people", "just",  "say",    "each"};

}  // namespace

void HttpPrompts::draw(std::span<int32_t> ids, int64_t vocab_size,
                       const std::vector<int32_t>& special) {
  std::uniform_int_distribution<int32_t> any(
      0, static_cast<int32_t>(std::min<int64_t>(vocab_size, INT32_MAX)) - 1);
  for (int32_t& into : ids) {
    // Tries are bounded: a vocabulary may be all special.
    for (int tries = 0; tries < 100; ++tries) {
      const int32_t id = any(random_);
      if (std::ranges::find(special, id) != special.end()) continue;
      into = id;
      break;
    }
  }
}

std::vector<int32_t> HttpPrompts::unique_ids(std::span<const int32_t> ids, int64_t vocab_size,
                                             const std::vector<int32_t>& special) {
  std::vector<int32_t> unique(ids.begin(), ids.end());
  const auto changed = std::min<int64_t>(kUniqueIds, std::ssize(unique));
  draw(std::span(unique).first(static_cast<size_t>(changed)), vocab_size, special);
  return unique;
}

std::vector<int32_t> HttpPrompts::drawn_ids(int64_t count, int64_t vocab_size,
                                            const std::vector<int32_t>& special) {
  std::vector<int32_t> ids(static_cast<size_t>(count));
  draw(ids, vocab_size, special);
  return ids;
}

std::string HttpPrompts::words(int64_t count) {
  std::string text;
  for (int64_t i = 0; i < count; ++i) {
    const auto word =
        i < kUniqueWords ? random_() % kWords.size() : static_cast<size_t>(i) % kWords.size();
    text += i == 0 ? "" : " ";
    text += kWords[word];
  }
  return text;
}

}  // namespace assay
