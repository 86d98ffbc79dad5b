// Merging by a heap of candidate pairs over a linked list of symbols, as the `tokenizers` package
// does it.
#include "engine/tokenizer/bpe.h"

#include <algorithm>
#include <queue>

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
  for (uint32_t rank = 0; rank < model_.merges.size(); ++rank) {
    const Merge& merge = model_.merges[rank];
    targets_[pair_key(merge.left, merge.right)] = {rank, merge.result};
  }
  model_.merges = {};
}

const BytePairEncoder::Target* BytePairEncoder::find(int32_t left, int32_t right) const {
  const auto it = targets_.find(pair_key(left, right));
  return it == targets_.end() ? nullptr : &it->second;
}

std::vector<BytePairEncoder::Symbol> BytePairEncoder::split_bytes(std::string_view word) const {
  std::vector<Symbol> symbols;
  symbols.reserve(word.size());
  bool after_unknown = false;
  for (const char c : word) {
    const auto& id = model_.byte_ids[static_cast<unsigned char>(c)];
    const bool is_unknown = !id.has_value();
    if (!is_unknown) {
      symbols.push_back({*id});
    } else if (model_.unknown && !(after_unknown && model_.fuse_unknown)) {
      symbols.push_back({*model_.unknown});
    }
    after_unknown = is_unknown;
  }
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
  std::vector<Symbol> symbols = split_bytes(word);
  merge_all(symbols);
  for (const Symbol& symbol : symbols) {
    if (!symbol.gone) ids.push_back(symbol.id);
  }
}

}  // namespace assay::engine
