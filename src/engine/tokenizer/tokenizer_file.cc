// Reads the stages of a tokenizer.json around its model; an unsupported one is refused by
// name.
#include "engine/tokenizer/tokenizer_file.h"

#include <limits>
#include <unordered_set>
#include <utility>

#include "base/records/json.h"
#include "engine/tokenizer/bpe_file.h"
#include "engine/tokenizer/stages/stage_json.h"

namespace assay::engine {
namespace {

Result<int32_t> as_token_id(const Json& id, std::string_view name) {
  const bool fits = id.is_number_unsigned() &&
                    id.get<uint64_t>() < static_cast<uint64_t>(std::numeric_limits<int32_t>::max());
  if (!fits) {
    return bad_input("{}: expected a token id, found {}", name, to_json_line(id).substr(0, 80));
  }
  return id.get<int32_t>();
}

// The template of one text: special tokens, the text ("A") once, special tokens.
Status read_template(const Json& stage, std::string_view name, TokenizerFile& file) {
  ASSAY_TRY(const Json* pieces, stage_list(stage, "single", name));
  const Json& specials = stage_member(stage, "special_tokens");
  std::vector<int32_t> prefix, suffix;
  size_t texts = 0;
  for (const Json& piece : *pieces) {
    const Json& special = stage_member(piece, "SpecialToken");
    if (special.is_null()) {
      ASSAY_TRY(const std::string id, json_string(stage_member(piece, "Sequence"), "id", name));
      if (id != "A") return bad_input("{}: expected sequence A in \"single\", found {}", name, id);
      ++texts;
      continue;
    }
    ASSAY_TRY(const std::string token, json_string(special, "id", name));
    ASSAY_TRY(const Json* ids, stage_list(stage_member(specials, token), "ids", name));
    for (const Json& id : *ids) {
      ASSAY_TRY(const int32_t value, as_token_id(id, name));
      (texts == 0 ? prefix : suffix).push_back(value);
    }
  }
  if (texts != 1) {
    return bad_input("{}: expected the text once in \"single\", found it {} times", name, texts);
  }
  file.prefix.insert(file.prefix.begin(), prefix.begin(), prefix.end());
  file.suffix.insert(file.suffix.end(), suffix.begin(), suffix.end());
  return {};
}

Status read_post_processor(const Json& stage, std::string_view object, TokenizerFile& file) {
  const std::string name = fmt::format("{}: post_processor", object);
  return walk_stage(
      stage, "processors", name, [&](const Json& part, const std::string& type) -> Status {
        if (type == "ByteLevel") return {};  // changes offsets alone
        if (type == "TemplateProcessing") return read_template(part, name, file);
        return bad_input("{}: expected TemplateProcessing or ByteLevel, found {}", name, type);
      });
}

Result<AddedToken> read_added_token(const Json& json, std::string_view name) {
  AddedToken token;
  ASSAY_TRY(token.content, json_string(json, "content", name));
  ASSAY_TRY(token.id, as_token_id(stage_member(json, "id"), name));
  ASSAY_TRY(token.special, json_bool_or(json, "special", false, name));
  ASSAY_TRY(token.single_word, json_bool_or(json, "single_word", false, name));
  ASSAY_TRY(token.lstrip, json_bool_or(json, "lstrip", false, name));
  ASSAY_TRY(token.rstrip, json_bool_or(json, "rstrip", false, name));
  ASSAY_TRY(token.normalized, json_bool_or(json, "normalized", !token.special, name));
  return token;
}

Status read_added_tokens(const TokenizerDocument& document, std::string_view object,
                         TokenizerFile& file) {
  const std::string name = fmt::format("{}: added_tokens", object);
  if (stage_member(document.json, "added_tokens").is_null()) return {};
  ASSAY_TRY(const Json* list, stage_list(document.json, "added_tokens", name));
  std::vector<AddedToken> tokens;
  std::unordered_set<std::string> specials;
  for (const Json& json : *list) {
    ASSAY_TRY(AddedToken token, read_added_token(json, name));
    if (token.special) specials.insert(token.content);
    tokens.push_back(std::move(token));
  }
  std::unordered_map<int32_t, std::string> seen;
  for (AddedToken& token : tokens) {
    if (token.content.empty()) continue;
    const auto [earlier, is_new] = seen.emplace(token.id, token.content);
    const auto in_vocabulary = document.vocabulary.find(token.content);
    const bool is_of_another =
        earlier->second != token.content ||
        (in_vocabulary == document.vocabulary.end() ? is_new && file.tokens.contains(token.id)
                                                    : in_vocabulary->second != token.id);
    if (is_of_another) {
      return bad_input(
          "{}: expected an added token to have its id in the vocabulary, or else an id that no "
          "other token has, found {} for {}",
          name, token.id, to_json_line(Json(token.content)).substr(0, 80));
    }
    if (!is_new) continue;
    if (token.normalized) {
      // Both ways, as tokenizers 0.23 has it: such a token is decoded to its normalised text, and
      // is special by that text.
      ASSAY_TRY(token.content, file.normalizer.apply(token.content));
    }
    const bool is_skipped = specials.contains(token.content);
    file.tokens[token.id] = {token.content, is_skipped};
    file.added.push_back(std::move(token));
  }
  return {};
}

}  // namespace

Result<TokenizerFile> read_tokenizer_file(std::string_view text, std::string_view object) {
  ASSAY_TRY(const TokenizerDocument document, parse_tokenizer_document(text, object));
  const Json& json = document.json;
  TokenizerFile file;
  ASSAY_TRY(file.model, read_bpe_model(document, object));
  ASSAY_TRY(file.normalizer, Normalizer::read(stage_member(json, "normalizer"), object));
  ASSAY_TRY(file.pre_tokenizer, PreTokenizer::read(stage_member(json, "pre_tokenizer"), object));
  ASSAY_CHECK(read_post_processor(stage_member(json, "post_processor"), object, file));
  ASSAY_TRY(file.decoder, Decoder::read(stage_member(json, "decoder"), object));
  for (const auto& [token, id] : document.vocabulary) {
    file.tokens[id] = {token, false};
  }
  ASSAY_CHECK(read_added_tokens(document, object, file));
  if (file.tokens.empty()) return bad_input("{}: expected tokens, found none", object);
  for (const std::vector<int32_t>* ids : {&file.prefix, &file.suffix}) {
    for (const int32_t id : *ids) {
      if (file.tokens.contains(id)) continue;
      return bad_input("{}: post_processor: expected ids of tokens, found {}", object, id);
    }
  }
  for (const auto& [id, token] : file.tokens) {
    if (file.decoder.can_stream(token.text)) continue;
    return bad_input(
        "{}: decoder: expected tokens of the byte alphabet where ByteLevel follows Fuse, found {}",
        object, json_quoted(token.text));
  }
  return file;
}

}  // namespace assay::engine
