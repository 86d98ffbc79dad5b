// Metadata to the stages of a tokenizer.json.
#include "engine/tokenizer/gguf_tokenizer.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "base/records/json.h"
#include "engine/tokenizer/bpe_file.h"
#include "engine/tokenizer/stages/split_pattern.h"
#include "engine/tokenizer/unicode.h"

namespace assay::engine {
namespace {

// Types of tokens (llama.h, llama_token_type), of which these are no plain text.
constexpr int64_t kControl = 3, kUserDefined = 4;
// A longer token is never the result of merging by scores; SentencePiece makes none of more than 16
// characters unless it is told to.
constexpr size_t kMaxPieceBytes = 512;

struct WordRules {
  std::string_view name;
  Json normalizer, pre_tokenizer;
  bool whole_words = false;  // a word that is a token stays whole
  bool begins = false;       // add_bos_token, where the file doesn't say
};

Json byte_level_stage(bool use_regex) {
  return {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", use_regex}};
}

Json after_split(std::string_view pattern) {
  const Json split = {{"type", "Split"},
                      {"pattern", {{"Regex", pattern}}},
                      {"behavior", "Isolated"},
                      {"invert", false}};
  return {{"type", "Sequence"}, {"pretokenizers", {split, byte_level_stage(false)}}};
}

Result<WordRules> word_rules(std::string_view name, std::string_view object) {
  if (name == "gpt-2") return WordRules{name, {}, byte_level_stage(true)};
  if (name == "llama-bpe") return WordRules{name, {}, after_split(kLlama3Pattern), true, true};
  if (name == "qwen2") return WordRules{name, {{"type", "NFC"}}, after_split(kQwen2Pattern)};
  if (name == "smollm") {
    const Json digits = {{"type", "Digits"}, {"individual_digits", true}};
    return WordRules{
        name, {}, {{"type", "Sequence"}, {"pretokenizers", {digits, byte_level_stage(true)}}}};
  }
  return bad_input(
      "{}: expected gpt-2, llama-bpe, qwen2 or smollm at \"tokenizer.ggml.pre\", found "
      "{}",
      object, json_quoted(name));
}

class GgufTokens {
 public:
  GgufTokens(const Gguf& file, std::string_view object) : file_(file), object_(object) {}

  Result<TokenizerFile> read() {
    ASSAY_CHECK(read_tokens());
    ASSAY_TRY(const auto kind, file_.text("tokenizer.ggml.model"));
    if (kind == "gpt2") {
      ASSAY_CHECK(read_bytes_kind());
    } else if (kind == "llama") {
      ASSAY_CHECK(read_pieces_kind());
    } else {
      return bad_input("{}: expected gpt2 or llama at \"tokenizer.ggml.model\", found {}", object_,
                       kind ? json_quoted(*kind) : "none");
    }
    for (const auto& [token, id] : vocabulary_) {
      const Utf8Char first = read_utf8(token, 0);
      if (!token.empty() && first.size == token.size()) result_.model.char_ids[first.code] = id;
    }
    return std::move(result_);
  }

 private:
  Result<std::optional<int32_t>> token_id(const std::string& name) const {
    const std::string key = fmt::format("tokenizer.ggml.{}_token_id", name);
    ASSAY_TRY(const auto id, file_.whole(key));
    if (!id) return std::nullopt;
    if (*id < 0 || static_cast<size_t>(*id) >= texts_.size()) {
      return bad_input("{}: expected an id from 0 to {} at {}, found {}", object_,
                       texts_.size() - 1, json_quoted(key), *id);
    }
    return static_cast<int32_t>(*id);
  }

  Status read_tokens() {
    ASSAY_TRY(const auto texts, file_.texts("tokenizer.ggml.tokens"));
    if (!texts || texts->empty() ||
        texts->size() > static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
      return bad_input("{}: expected tokens at \"tokenizer.ggml.tokens\", found {}", object_,
                       texts ? texts->size() : 0);
    }
    texts_ = *texts;
    ASSAY_TRY(const auto types, file_.wholes("tokenizer.ggml.token_type"));
    if (types && types->size() != texts_.size()) {
      return bad_input("{}: expected {} types of tokens, found {}", object_, texts_.size(),
                       types->size());
    }
    for (size_t i = 0; i < texts_.size(); ++i) {
      const auto id = static_cast<int32_t>(i);
      const std::string text = repair_utf8(texts_[i]);
      const int64_t type = types ? (*types)[i] : 1;
      result_.tokens[id] = {text, type == kControl};
      vocabulary_.emplace(text, id);  // of equal ones the first
      if ((type == kControl || type == kUserDefined) && !text.empty()) {
        result_.added.push_back(
            {.id = id, .content = text, .special = type == kControl, .normalized = false});
      }
    }
    return {};
  }

  // Special tokens around every text.
  Status read_ends(bool begins) {
    ASSAY_TRY(const auto bos, file_.flag("tokenizer.ggml.add_bos_token"));
    ASSAY_TRY(const auto eos, file_.flag("tokenizer.ggml.add_eos_token"));
    if (bos.value_or(begins)) {
      ASSAY_TRY(const auto id, token_id("bos"));
      if (id) result_.prefix.push_back(*id);
    }
    if (eos.value_or(false)) {
      ASSAY_TRY(const auto id, token_id("eos"));
      if (id) result_.suffix.push_back(*id);
    }
    return {};
  }

  Status read_bytes_kind() {
    ASSAY_TRY(const auto name, file_.text("tokenizer.ggml.pre"));
    ASSAY_TRY(const WordRules rules, word_rules(name.value_or(""), object_));
    ASSAY_TRY(result_.normalizer, Normalizer::read(rules.normalizer, object_));
    ASSAY_TRY(result_.pre_tokenizer, PreTokenizer::read(rules.pre_tokenizer, object_));
    ASSAY_TRY(result_.decoder, Decoder::read({{"type", "ByteLevel"}}, object_));
    ASSAY_TRY(const auto merges, file_.texts("tokenizer.ggml.merges"));
    if (!merges) {
      return bad_input("{}: expected merges at \"tokenizer.ggml.merges\", found none", object_);
    }
    for (const std::string_view merge : *merges) ASSAY_CHECK(add_merge(merge));
    if (rules.whole_words) result_.model.words = vocabulary_;
    return read_ends(rules.begins);
  }

  // "left right"
  Status add_merge(std::string_view merge) {
    const size_t space = merge.find(' ', 1);
    std::array<int32_t, 3> ids{};
    if (space != std::string_view::npos) {
      const std::string left(merge.substr(0, space)), right(merge.substr(space + 1));
      const std::array<std::string, 3> parts = {left, right, left + right};
      bool known = true;
      for (size_t i = 0; i < parts.size(); ++i) {
        const auto found = vocabulary_.find(parts[i]);
        known = known && found != vocabulary_.end();
        if (known) ids[i] = found->second;
      }
      if (known) {
        result_.model.merges.push_back({ids[0], ids[1], ids[2]});
        return {};
      }
    }
    return bad_input("{}: expected merges of two tokens into another, found {}", object_,
                     json_quoted(merge.substr(0, 80)));
  }

  Status read_pieces_kind() {
    ASSAY_TRY(const auto scores, file_.floats("tokenizer.ggml.scores"));
    if (!scores || scores->size() != texts_.size()) {
      return bad_input("{}: expected {} scores of tokens, found {}", object_, texts_.size(),
                       scores ? scores->size() : 0);
    }
    ASSAY_TRY(const auto prefixed, file_.flag("tokenizer.ggml.add_space_prefix"));
    const bool with_prefix = prefixed.value_or(true);
    const std::string mark = "\u2581";
    const Json replace = {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", mark}};
    const Json prepend = {{"type", "Prepend"}, {"prepend", mark}};
    const Json normal = {
        {"type", "Sequence"},
        {"normalizers", with_prefix ? Json::array({prepend, replace}) : Json::array({replace})}};
    ASSAY_TRY(result_.normalizer, Normalizer::read(normal, object_));
    ASSAY_TRY(result_.pre_tokenizer, PreTokenizer::read({}, object_));
    Json steps = {{{"type", "Replace"}, {"pattern", {{"String", mark}}}, {"content", " "}},
                  {{"type", "ByteFallback"}},
                  {{"type", "Fuse"}}};
    if (with_prefix) {
      steps.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
    }
    ASSAY_TRY(result_.decoder, Decoder::read({{"type", "Sequence"}, {"decoders", steps}}, object_));
    for (unsigned byte = 0; byte < 256; ++byte) {
      const auto found = vocabulary_.find(fmt::format("<0x{:02X}>", byte));
      if (found != vocabulary_.end()) result_.model.byte_ids[byte] = found->second;
    }
    ASSAY_TRY(result_.model.unknown, token_id("unknown"));
    merge_by_scores(*scores);
    return read_ends(true);
  }

  // Every pair of tokens that is a token, the one of the highest score first.
  void merge_by_scores(const std::vector<float>& scores) {
    std::vector<int32_t> order;
    for (size_t i = 0; i < texts_.size(); ++i) order.push_back(static_cast<int32_t>(i));
    const auto score = [&](int32_t id) {
      const float value = scores[static_cast<size_t>(id)];
      return value == value ? value : -std::numeric_limits<float>::infinity();
    };
    std::ranges::stable_sort(order, [&](int32_t a, int32_t b) { return score(a) > score(b); });
    float last = 0;
    for (const int32_t id : order) {
      const std::string& text = result_.tokens[id].text;
      if (text.size() > kMaxPieceBytes || vocabulary_[text] != id) continue;
      for (size_t at = 1; at < text.size(); ++at) {
        const auto left = vocabulary_.find(text.substr(0, at));
        if (left == vocabulary_.end()) continue;
        const auto right = vocabulary_.find(text.substr(at));
        if (right == vocabulary_.end()) continue;
        auto& merges = result_.model.merges;
        const bool ties = !merges.empty() && score(id) == last;
        merges.push_back({left->second, right->second, id, ties});
        last = score(id);
      }
    }
  }

  const Gguf& file_;
  std::string_view object_;
  std::vector<std::string_view> texts_;
  Vocabulary vocabulary_;
  TokenizerFile result_;
};

}  // namespace

Result<TokenizerFile> read_gguf_tokenizer(const Gguf& file, std::string_view object) {
  return GgufTokens(file, object).read();
}

}  // namespace assay::engine
