// Reading a tokenizer.json's model: the vocabulary while it is parsed, merges in both of their
// forms.
#include "engine/tokenizer/bpe_file.h"

#include <array>
#include <limits>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "engine/tokenizer/unicode.h"

namespace assay::engine {
namespace {

// Sees the document as it is parsed, keeps the members of model.vocab and drops them from it.
class VocabularyFilter {
 public:
  // False: drop.
  bool see(int depth, Json::parse_event_t event, const Json& parsed) {
    using Event = Json::parse_event_t;
    if (event == Event::key && depth == 1) in_model_ = parsed == "model";
    if (event == Event::key && depth == 2) in_vocabulary_ = in_model_ && parsed == "vocab";
    if (!in_vocabulary_ || depth < 3) return true;
    if (event == Event::key) {
      token_ = parsed.get<std::string>();
    } else if (event == Event::value && depth == 3 && token_) {
      add(parsed);
    } else {
      wrong_ = "a list or an object";
    }
    return false;
  }

  Result<Vocabulary> finish(std::string_view object) && {
    if (!wrong_.empty()) {
      return bad_input(
          "{}: expected an object of tokens with unique ids at \"model.vocab\", found {}", object,
          wrong_);
    }
    return std::move(vocabulary_);
  }

 private:
  void add(const Json& id) {
    const bool fits =
        id.is_number_unsigned() &&
        id.get<uint64_t>() < static_cast<uint64_t>(std::numeric_limits<int32_t>::max());
    if (!fits) {
      wrong_ = "the id " + to_json_line(id).substr(0, 80);
    } else if (!ids_.insert(id.get<int32_t>()).second) {
      wrong_ = "the id " + to_json_line(id) + " twice";
    } else if (!vocabulary_.emplace(*token_, id.get<int32_t>()).second) {
      wrong_ = "the token " + to_json_line(Json(*token_)).substr(0, 80) + " twice";
    }
    token_.reset();
  }

  bool in_model_ = false;
  bool in_vocabulary_ = false;
  std::optional<std::string> token_;
  Vocabulary vocabulary_;
  std::unordered_set<int32_t> ids_;
  std::string wrong_;
};

Status check_options(const Json& model, std::string_view name) {
  ASSAY_TRY(const std::string type, json_string_or(model, "type", "BPE", name));
  if (type != "BPE") return bad_input("{}: expected type BPE, found {}", name, type);
  ASSAY_TRY(const double dropout, json_number_or(model, "dropout", 0, name));
  if (dropout != 0) return bad_input("{}: expected no dropout, found {}", name, dropout);
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    ASSAY_TRY(const std::string affix, json_string_or(model, key, "", name));
    if (!affix.empty()) return bad_input("{}: expected no {}, found \"{}\"", name, key, affix);
  }
  return {};
}

// ["a", "b"], or "a b" as files were written before tokenizers 0.20.
Result<std::pair<std::string, std::string>> read_pair(const Json& merge, std::string_view name) {
  if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
    return std::pair(merge[0].get<std::string>(), merge[1].get<std::string>());
  }
  if (merge.is_string()) {
    const auto text = merge.get<std::string>();
    const size_t space = text.find(' ');
    if (space != std::string::npos && text.find(' ', space + 1) == std::string::npos) {
      return std::pair(text.substr(0, space), text.substr(space + 1));
    }
  }
  return bad_input("{}: expected two tokens a merge, found {}", name,
                   to_json_line(merge).substr(0, 80));
}

Result<std::vector<BytePairEncoder::Merge>> read_merges(const Json& model,
                                                        const Vocabulary& vocabulary,
                                                        std::string_view name) {
  const auto list = model.find("merges");
  if (list == model.end() || !list->is_array()) {
    return bad_input("{}: expected a list at \"merges\", found {}", name,
                     list == model.end() ? "nothing" : list->type_name());
  }
  std::vector<BytePairEncoder::Merge> merges;
  merges.reserve(list->size());
  for (const Json& entry : *list) {
    if (entry.is_string() && entry.get_ref<const std::string&>().starts_with("#version")) continue;
    ASSAY_TRY(const auto pair, read_pair(entry, name));
    std::array<int32_t, 3> ids{};
    const std::array<std::string, 3> tokens = {pair.first, pair.second, pair.first + pair.second};
    for (size_t i = 0; i < tokens.size(); ++i) {
      const auto it = vocabulary.find(tokens[i]);
      if (it == vocabulary.end()) {
        return bad_input("{}: expected merges of tokens in the vocabulary, found {} in merge {}",
                         name, to_json_line(Json(tokens[i])).substr(0, 80), merges.size());
      }
      ids[i] = it->second;
    }
    merges.push_back({ids[0], ids[1], ids[2]});
  }
  return merges;
}

}  // namespace

Result<TokenizerDocument> parse_tokenizer_document(std::string_view text, std::string_view object) {
  VocabularyFilter filter;
  const auto see = [&filter](int depth, Json::parse_event_t event, Json& parsed) {
    return filter.see(depth, event, parsed);
  };
  ASSAY_TRY(Json json, parse_json(text, object, see));
  if (!json.is_object()) {
    return bad_input("{}: expected an object, found {}", object, json.type_name());
  }
  ASSAY_TRY(Vocabulary vocabulary, std::move(filter).finish(object));
  return TokenizerDocument{std::move(json), std::move(vocabulary)};
}

Result<BytePairEncoder::Model> read_bpe_model(const TokenizerDocument& document,
                                              std::string_view object) {
  const std::string name = fmt::format("{}: model", object);
  const auto json = document.json.find("model");
  if (json == document.json.end() || !json->is_object()) {
    return bad_input("{}: expected an object at \"model\", found {}", object,
                     json == document.json.end() ? "nothing" : json->type_name());
  }
  ASSAY_CHECK(check_options(*json, name));

  BytePairEncoder::Model model;
  ASSAY_TRY(model.merges, read_merges(*json, document.vocabulary, name));
  ASSAY_TRY(model.fuse_unknown, json_bool_or(*json, "fuse_unk", false, name));
  ASSAY_TRY(const std::string unknown, json_string_or(*json, "unk_token", "", name));
  if (!unknown.empty()) {
    const auto it = document.vocabulary.find(unknown);
    if (it == document.vocabulary.end()) {
      return bad_input("{}: expected unk_token in the vocabulary, found \"{}\"", name, unknown);
    }
    model.unknown = it->second;
  }
  for (const auto& [token, id] : document.vocabulary) {
    if (token.empty()) continue;
    const Utf8Char first = read_utf8(token, 0);
    if (first.size == token.size()) model.char_ids.emplace(first.code, id);
  }
  ASSAY_TRY(const bool byte_fallback, json_bool_or(*json, "byte_fallback", false, name));
  for (unsigned byte = 0; byte_fallback && byte < 256; ++byte) {
    const auto it = document.vocabulary.find(fmt::format("<0x{:02X}>", byte));
    if (it != document.vocabulary.end()) model.byte_ids[byte] = it->second;
  }
  ASSAY_TRY(const bool ignore_merges, json_bool_or(*json, "ignore_merges", false, name));
  if (ignore_merges) model.words = document.vocabulary;
  return model;
}

}  // namespace assay::engine
