// Merging by a heap of candidate pairs over a linked list of symbols, as the `tokenizers` package
// does it.
#include "engine/tokenizer/bpe.h"

#include <algorithm>
#include <queue>

#include "engine/tokenizer/unicode.h"

namespace assay::engine {
namespace {

constexpr uint32_t kNone = UINT32_MAX;

uint64_t pair_key(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

// The pair that starts at symbol `left` and gives `result`; stale once either symbol has changed.
struct Candidate {
  uint32_t rank = 0;
  uint32_t left = 0;
  int32_t result = 0;

  // Lowest rank first, then leftmost.
  friend bool operator>(const Candidate& a, const Candidate& b) {
    return std::pair(a.rank, a.left) > std::pair(b.rank, b.left);
  }
};

}  // namespace

BytePairEncoder::BytePairEncoder(Model model) : model_(std::move(model)) {
  targets_.reserve(model_.merges.size());
  uint32_t rank = 0;
  for (const Merge& merge : model_.merges) {
    rank += merge.ties ? 0 : 1;
    targets_[pair_key(merge.left, merge.right)] = {rank, merge.result};
  }
  model_.merges = {};
}

const BytePairEncoder::Target* BytePairEncoder::find(int32_t left, int32_t right) const {
  const auto it = targets_.find(pair_key(left, right));
  return it == targets_.end() ? nullptr : &it->second;
}

// False, and nothing appended, where a byte has no id.
bool BytePairEncoder::append_bytes(std::string_view character, std::vector<Symbol>& symbols) const {
  const auto id_of = [&](char byte) { return model_.byte_ids[static_cast<unsigned char>(byte)]; };
  const auto has_id = [&](char byte) { return id_of(byte).has_value(); };
  if (!std::all_of(character.begin(), character.end(), has_id)) return false;
  for (const char byte : character) symbols.push_back({*id_of(byte)});
  return true;
}

std::vector<BytePairEncoder::Symbol> BytePairEncoder::split_chars(std::string_view word) const {
  std::vector<Symbol> symbols;
  symbols.reserve(word.size());
  bool unknown_pending = false;
  const auto flush_unknown = [&] {
    if (unknown_pending) symbols.push_back({*model_.unknown});
    unknown_pending = false;
  };
  for (size_t at = 0; at < word.size();) {
    const Utf8Char c = read_utf8(word, at);
    const auto id = model_.char_ids.find(c.code);
    if (id != model_.char_ids.end()) {
      flush_unknown();
      symbols.push_back({id->second});
    } else if (append_bytes(word.substr(at, c.size), symbols)) {
      // The package leaves an unknown character before these pending, so its id comes after them.
    } else if (model_.unknown) {
      if (!model_.fuse_unknown) flush_unknown();
      unknown_pending = true;
    }
    at += c.size;
  }
  flush_unknown();
  for (uint32_t i = 0; i < symbols.size(); ++i) {
    symbols[i].previous = i == 0 ? kNone : i - 1;
    symbols[i].next = i + 1 == symbols.size() ? kNone : i + 1;
  }
  return symbols;
}

void BytePairEncoder::merge_all(std::vector<Symbol>& symbols) const {
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  const auto consider = [&](uint32_t left) {
    if (left == kNone || symbols[left].next == kNone) return;
    const Target* target = find(symbols[left].id, symbols[symbols[left].next].id);
    if (target) queue.push({target->rank, left, target->result});
  };
  for (uint32_t i = 0; i < symbols.size(); ++i) consider(i);
  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    Symbol& left = symbols[best.left];
    if (left.gone || left.next == kNone) continue;
    Symbol& right = symbols[left.next];
    const Target* target = find(left.id, right.id);
    if (!target || target->result != best.result) continue;
    left.id = best.result;
    right.gone = true;
    left.next = right.next;
    if (left.next != kNone) symbols[left.next].previous = best.left;
    consider(left.previous);
    consider(best.left);
  }
}

void BytePairEncoder::encode(std::string_view word, std::vector<int32_t>& ids) const {
  if (!model_.words.empty()) {
    const auto it = model_.words.find(std::string(word));
    if (it != model_.words.end()) {
      ids.push_back(it->second);
      return;
    }
  }
  std::vector<Symbol> symbols = split_chars(word);
  merge_all(symbols);
  for (const Symbol& symbol : symbols) {
    if (!symbol.gone) ids.push_back(symbol.id);
  }
}

}  // namespace assay::engine
