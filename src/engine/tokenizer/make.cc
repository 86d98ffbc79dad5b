// A made-up tokenizer: bytes, then the merges that spell a list of words, then random ones.
#include "engine/tokenizer/make.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/add_once.h"
#include "base/random.h"
#include "base/records/json.h"
#include "base/text/text.h"
#include "engine/tokenizer/byte_alphabet.h"
#include "engine/tokenizer/stages/split_pattern.h"

namespace assay::engine {
namespace {

// Bytes that come first if there is no room for all 256.
constexpr std::string_view kUsefulBytes = " etaoinshrdlucmfwypvbgkjqxz.,\n'-?!0123456789";

// Words chosen so that English comes out at some four bytes a token, as with a trained vocabulary.
constexpr std::string_view kWords =
    "the of and to in is that for it was on as with be by at this are not from or have an they "
    "which one you "
    "were all her she there would their we him been has when who will no more if out so up said "
    "what its about "
    "than into them can only other time new some could these two may first then do any like my now "
    "over such "
    "our man me even most made after also did many off before must well back through years where "
    "much your way "
    "down should because long each just state those people too mr how little good world make very "
    "year still see "
    "own work men day get here old life both between being under three never know same last "
    "another while us "
    "might great go come since against right came take used himself few house use during without "
    "again place "
    "around however small found mrs thought went say part once general high upon school every don "
    "does got "
    "united left number course war until always away something fact water though less public put "
    "think almost "
    "hand enough far took head yet government system set better told night nothing end why called "
    "find going "
    "look asked later knew point next program city business give group toward days young let room "
    "president side "
    "social given present several order national possible rather second face per among form "
    "important often "
    "things looked early white case large need big four within felt along children saw best church "
    "ever least "
    "power development light thing seemed family interest want members mind country area others "
    "done turned "
    "although open god service certain kind problem began different door thus help sense means "
    "whole matter "
    "model token cache memory compile measure phase graph kernel latency decode prefill prompt "
    "value number "
    "ing ed er ly tion ment ness able ity ous ive al en es ation ers ight ough all and other er "
    "est con pre pro";

constexpr int64_t kLlama3Reserved = 256;  // special tokens at the end of Llama 3's vocabulary
constexpr int64_t kLlama3ReservedFrom = 4096;
constexpr int64_t kQwen2Words = 151643;  // of the real vocabulary; the rest is special or padding
constexpr size_t kLongestToken = 12;

std::vector<std::string> special_tokens(int64_t vocab_size, TokenizerStyle style) {
  std::vector<std::string> tokens;
  switch (style) {
    case TokenizerStyle::kGpt2:
      tokens = {"<|endoftext|>"};
      break;
    case TokenizerStyle::kLlama3: {
      const int64_t count = vocab_size >= kLlama3ReservedFrom ? kLlama3Reserved : 4;
      tokens = {"<|begin_of_text|>", "<|end_of_text|>"};
      for (int64_t i = 0; i < count - 2; ++i) {
        tokens.push_back(fmt::format("<|reserved_special_token_{}|>", i));
      }
      break;
    }
    case TokenizerStyle::kQwen2: {
      const int64_t count = std::max<int64_t>(3, vocab_size - kQwen2Words);
      tokens = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
      for (int64_t i = 0; i < count - 3; ++i) tokens.push_back(fmt::format("<|extra_{}|>", i));
      break;
    }
  }
  return tokens;
}

// Grows a vocabulary by merges until it has `size` tokens.
class VocabularyMaker {
 public:
  explicit VocabularyMaker(size_t size) : size_(size) {}

  void add_bytes() {
    std::vector<uint8_t> bytes;
    if (size_ < 256) {
      for (const char c : kUsefulBytes) bytes.push_back(static_cast<uint8_t>(c));
    }
    for (const uint8_t byte : bytes_in_vocabulary_order()) {
      add_once(bytes, byte);
    }
    bytes.resize(std::min(size_, bytes.size()));
    for (const uint8_t byte : bytes) add(byte_symbol(byte));
  }

  // Left to right: " t", " th", " the". Words inside a word lack the space.
  void add_words() {
    for (const bool spaced : {true, false}) {
      for (const std::string& word : split(kWords, ' ')) {
        std::string token = spaced ? byte_symbol(' ') : word.substr(0, 1);
        for (const char letter : std::string_view(word).substr(spaced ? 0 : 1)) {
          add_merge(token, std::string(1, letter));
          token += letter;
        }
      }
    }
  }

  void add_random_merges() {
    std::vector<std::string> parts;  // letters alone, perhaps after a space: the parts of text
    const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
    const auto is_word = [&](std::string_view token) {
      if (token.starts_with(byte_symbol(' '))) token.remove_prefix(byte_symbol(' ').size());
      return std::all_of(token.begin(), token.end(), is_letter);
    };
    std::copy_if(vocabulary_.begin(), vocabulary_.end(), std::back_inserter(parts), is_word);
    Random random(0);
    while (vocabulary_.size() < size_) {
      const std::string left = parts[random.below(parts.size())];
      const std::string right = parts[random.below(parts.size())];
      if (!is_letter(right[0]) || left.size() + right.size() > kLongestToken) continue;
      if (add_merge(left, right)) parts.push_back(left + right);
    }
  }

  const std::vector<std::string>& vocabulary() const { return vocabulary_; }
  const std::vector<std::pair<std::string, std::string>>& merges() const { return merges_; }

 private:
  void add(const std::string& token) {
    known_.insert(token);
    vocabulary_.push_back(token);
  }

  bool add_merge(const std::string& left, const std::string& right) {
    if (vocabulary_.size() >= size_ || known_.contains(left + right)) return false;
    assert(known_.contains(left) && known_.contains(right));
    add(left + right);
    merges_.emplace_back(left, right);
    return true;
  }

  size_t size_;
  std::vector<std::string> vocabulary_;
  std::vector<std::pair<std::string, std::string>> merges_;
  std::unordered_set<std::string> known_;
};

Json byte_level(bool use_regex) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", false},
          {"trim_offsets", true},
          {"use_regex", use_regex}};
}

Json pre_tokenizer(TokenizerStyle style) {
  if (style == TokenizerStyle::kGpt2) return byte_level(true);
  const std::string_view pattern =
      style == TokenizerStyle::kLlama3 ? kLlama3Pattern : kQwen2Pattern;
  const Json split_step = {{"type", "Split"},
                           {"pattern", {{"Regex", pattern}}},
                           {"behavior", "Isolated"},
                           {"invert", false}};
  return {{"type", "Sequence"}, {"pretokenizers", Json::array({split_step, byte_level(false)})}};
}

Json post_processor(TokenizerStyle style, int64_t bos_id, const std::string& bos) {
  if (style != TokenizerStyle::kLlama3) return byte_level(false);
  const Json special = {{"SpecialToken", {{"id", bos}, {"type_id", 0}}}};
  const auto sequence = [](std::string_view id, int type) -> Json {
    return {{"Sequence", {{"id", id}, {"type_id", type}}}};
  };
  const Json template_step = {
      {"type", "TemplateProcessing"},
      {"single", Json::array({special, sequence("A", 0)})},
      {"pair", Json::array({special, sequence("A", 0), special, sequence("B", 1)})},
      {"special_tokens",
       {{bos, {{"id", bos}, {"ids", Json::array({bos_id})}, {"tokens", Json::array({bos})}}}}}};
  return {{"type", "Sequence"}, {"processors", Json::array({byte_level(false), template_step})}};
}

Json added_tokens(const std::vector<std::string>& specials, int64_t first_id) {
  Json list = Json::array();
  for (size_t i = 0; i < specials.size(); ++i) {
    list.push_back({{"id", first_id + static_cast<int64_t>(i)},
                    {"content", specials[i]},
                    {"single_word", false},
                    {"lstrip", false},
                    {"rstrip", false},
                    {"normalized", false},
                    {"special", true}});
  }
  return list;
}

// Written by hand: Json's objects are searched from the front, too slow for a vocabulary.
std::string vocabulary_json(const std::vector<std::string>& vocabulary,
                            const std::vector<std::string>& specials) {
  std::string text = "{";
  size_t id = 0;
  for (const auto* list : {&vocabulary, &specials}) {
    for (const std::string& token : *list) {
      text += fmt::format("{}\n{}:{}", id == 0 ? "" : ",", to_json_line(Json(token)), id);
      ++id;
    }
  }
  return text + "}";
}

std::string merges_json(const std::vector<std::pair<std::string, std::string>>& merges) {
  std::string text = "[";
  for (size_t i = 0; i < merges.size(); ++i) {
    text += fmt::format("{}\n[{},{}]", i == 0 ? "" : ",", to_json_line(Json(merges[i].first)),
                        to_json_line(Json(merges[i].second)));
  }
  return text + "]";
}

}  // namespace

SpecialTokenIds special_token_ids(int64_t vocab_size, TokenizerStyle style) {
  const auto count = static_cast<int64_t>(special_tokens(vocab_size, style).size());
  const int64_t first = vocab_size - count;
  if (style == TokenizerStyle::kLlama3) return {first, first + 1};
  if (style == TokenizerStyle::kQwen2) return {std::nullopt, first};
  return {first, first};
}

std::string make_tokenizer_json(int64_t vocab_size, TokenizerStyle style) {
  assert(vocab_size >= 8);
  const std::vector<std::string> specials = special_tokens(vocab_size, style);
  const SpecialTokenIds ids = special_token_ids(vocab_size, style);
  const int64_t first_special = vocab_size - static_cast<int64_t>(specials.size());

  VocabularyMaker maker(static_cast<size_t>(first_special));
  maker.add_bytes();
  const bool all_bytes = first_special >= 256;
  if (all_bytes) {
    maker.add_words();
    maker.add_random_merges();
  }

  const Json head = {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", added_tokens(specials, first_special)},
      {"normalizer", style == TokenizerStyle::kQwen2 ? Json{{"type", "NFC"}} : Json()},
      {"pre_tokenizer", pre_tokenizer(style)},
      {"post_processor", post_processor(style, ids.bos.value_or(0), specials[0])},
      {"decoder", byte_level(false)}};
  const Json eos = specials[static_cast<size_t>(ids.eos - first_special)];
  const Json model = {{"type", "BPE"},
                      {"dropout", nullptr},
                      {"unk_token", all_bytes ? Json() : eos},
                      {"continuing_subword_prefix", nullptr},
                      {"end_of_word_suffix", nullptr},
                      {"fuse_unk", false},
                      {"byte_fallback", false},
                      {"ignore_merges", style == TokenizerStyle::kLlama3}};
  // Both objects stay open for the members added below.
  std::string text = to_json_line(head);
  text.pop_back();
  text += ",\n\"model\":" + to_json_line(model);
  text.pop_back();
  text += ",\n\"vocab\":" + vocabulary_json(maker.vocabulary(), specials);
  text += ",\n\"merges\":" + merges_json(maker.merges()) + "}}\n";
  return text;
}

}  // namespace assay::engine
