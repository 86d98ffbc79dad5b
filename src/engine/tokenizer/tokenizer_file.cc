// Reading the stages of a tokenizer.json around its model; whatever isn't supported is refused by
// name.
#include "engine/tokenizer/tokenizer_file.h"

#include <limits>
#include <utility>

#include "base/json.h"
#include "engine/tokenizer/bpe_file.h"
#include "engine/tokenizer/byte_alphabet.h"
#include "engine/tokenizer/unicode.h"

namespace assay::engine {
namespace {

// The member, or null where there is none.
const Json& member(const Json& object, std::string_view key) {
  static const Json kNothing;
  if (!object.is_object()) return kNothing;
  const auto it = object.find(std::string(key));
  return it == object.end() ? kNothing : *it;
}

Result<const Json*> list_member(const Json& object, std::string_view key, std::string_view name) {
  const Json& list = member(object, key);
  if (!list.is_array()) {
    return bad_input("{}: expected a list at \"{}\", found {}", name, key, list.type_name());
  }
  return &list;
}

Result<int32_t> as_token_id(const Json& id, std::string_view name) {
  const bool fits = id.is_number_unsigned() &&
                    id.get<uint64_t>() < static_cast<uint64_t>(std::numeric_limits<int32_t>::max());
  if (!fits) {
    return bad_input("{}: expected a token id, found {}", name, to_json_line(id).substr(0, 80));
  }
  return id.get<int32_t>();
}

// Walks a stage: `visit(stage, type)` for it, or for each member of a Sequence in order. `list_key`
// is what the Sequence of this kind of stage calls its members.
template <typename Visit>
Status walk_stage(const Json& stage, std::string_view list_key, std::string_view name,
                  const Visit& visit) {
  if (stage.is_null()) return {};
  const Json& type_json = member(stage, "type");
  if (!type_json.is_string()) {
    return bad_input("{}: expected a string at \"type\", found {}", name, type_json.type_name());
  }
  const auto& type = type_json.get_ref<const std::string&>();
  if (type != "Sequence") return visit(stage, type);
  ASSAY_TRY(const Json* list, list_member(stage, list_key, name));
  for (const Json& part : *list) ASSAY_CHECK(walk_stage(part, list_key, name, visit));
  return {};
}

Status read_normalizer(const Json& stage, std::string_view object, TokenizerFile& file) {
  const std::string name = fmt::format("{}: normalizer", object);
  return walk_stage(stage, "normalizers", name,
                    [&](const Json&, const std::string& type) -> Status {
                      if (type != "NFC")
                        return bad_input("{}: expected NFC or none, found {}", name, type);
                      file.nfc = true;
                      return {};
                    });
}

Result<SplitStep> read_split(const Json& stage, std::string_view name) {
  ASSAY_TRY(const std::string behavior, json_string(stage, "behavior", name));
  if (behavior != "Isolated") {
    return bad_input("{}: expected Split with behavior Isolated, found {}", name, behavior);
  }
  ASSAY_TRY(const bool invert, json_bool_or(stage, "invert", false, name));
  if (invert) return bad_input("{}: expected Split with invert false, found true", name);
  ASSAY_TRY(const std::string pattern, json_string(member(stage, "pattern"), "Regex", name));
  ASSAY_TRY(auto compiled, SplitPattern::compile(pattern, name));
  return SplitStep{false, std::move(compiled)};
}

Result<SplitStep> read_byte_level(const Json& stage, std::string_view name) {
  SplitStep step;
  ASSAY_TRY(step.add_prefix_space, json_bool_or(stage, "add_prefix_space", true, name));
  ASSAY_TRY(const bool use_regex, json_bool_or(stage, "use_regex", true, name));
  if (use_regex) {
    ASSAY_TRY(step.pattern, SplitPattern::compile(kGpt2Pattern, name));
  }
  return step;
}

Status read_pre_tokenizer(const Json& stage, std::string_view object, TokenizerFile& file) {
  const std::string name = fmt::format("{}: pre_tokenizer", object);
  bool is_bytes = false;  // ByteLevel turns text into byte symbols: nothing may follow it
  ASSAY_CHECK(walk_stage(
      stage, "pretokenizers", name, [&](const Json& part, const std::string& type) -> Status {
        if (is_bytes || (type != "Split" && type != "ByteLevel")) {
          return bad_input("{}: expected Splits and then one ByteLevel, found {}{}", name, type,
                           is_bytes ? " after ByteLevel" : "");
        }
        is_bytes = type == "ByteLevel";
        ASSAY_TRY(SplitStep step, is_bytes ? read_byte_level(part, name) : read_split(part, name));
        file.steps.push_back(std::move(step));
        return {};
      }));
  if (!is_bytes) return bad_input("{}: expected ByteLevel, found none", name);
  return {};
}

Status read_decoder(const Json& stage, std::string_view object) {
  const std::string name = fmt::format("{}: decoder", object);
  size_t count = 0;
  ASSAY_CHECK(
      walk_stage(stage, "decoders", name, [&](const Json&, const std::string& type) -> Status {
        if (type != "ByteLevel") return bad_input("{}: expected ByteLevel, found {}", name, type);
        ++count;
        return {};
      }));
  if (count != 1) return bad_input("{}: expected one ByteLevel, found {}", name, count);
  return {};
}

// The template of one text: special tokens, the text ("A") once, special tokens.
Status read_template(const Json& stage, std::string_view name, TokenizerFile& file) {
  ASSAY_TRY(const Json* pieces, list_member(stage, "single", name));
  const Json& specials = member(stage, "special_tokens");
  std::vector<int32_t> prefix, suffix;
  size_t texts = 0;
  for (const Json& piece : *pieces) {
    const Json& special = member(piece, "SpecialToken");
    if (special.is_null()) {
      ASSAY_TRY(const std::string id, json_string(member(piece, "Sequence"), "id", name));
      if (id != "A") return bad_input("{}: expected sequence A in \"single\", found {}", name, id);
      ++texts;
      continue;
    }
    ASSAY_TRY(const std::string token, json_string(special, "id", name));
    ASSAY_TRY(const Json* ids, list_member(member(specials, token), "ids", name));
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
  ASSAY_TRY(token.id, as_token_id(member(json, "id"), name));
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
  if (member(document.json, "added_tokens").is_null()) return {};
  ASSAY_TRY(const Json* list, list_member(document.json, "added_tokens", name));
  std::unordered_map<int32_t, std::string> seen;
  for (const Json& json : *list) {
    ASSAY_TRY(AddedToken token, read_added_token(json, name));
    if (token.content.empty()) continue;
    const auto [earlier, is_new] = seen.emplace(token.id, token.content);
    const auto in_vocabulary = document.vocabulary.find(token.content);
    const bool is_of_another =
        earlier->second != token.content ||
        (in_vocabulary == document.vocabulary.end() ? is_new && file.tokens.contains(token.id)
                                                    : in_vocabulary->second != token.id);
    if (is_of_another) {
      return bad_input(
          "{}: expected ids that no other token has, and the vocabulary's, found {} for {}", name,
          token.id, to_json_line(Json(token.content)).substr(0, 80));
    }
    if (!is_new) continue;
    if (token.normalized && file.nfc) {
      // Both ways, as tokenizers 0.23 has it: such a token is decoded to its normalised text.
      ASSAY_TRY(token.content, normalize_nfc(token.content));
    }
    file.tokens[token.id] = {bytes_of_symbols(token.content).value_or(token.content),
                             token.special};
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
  ASSAY_CHECK(read_normalizer(member(json, "normalizer"), object, file));
  ASSAY_CHECK(read_pre_tokenizer(member(json, "pre_tokenizer"), object, file));
  ASSAY_CHECK(read_post_processor(member(json, "post_processor"), object, file));
  ASSAY_CHECK(read_decoder(member(json, "decoder"), object));
  for (const auto& [token, id] : document.vocabulary) {
    file.tokens[id] = {bytes_of_symbols(token).value_or(token), false};
  }
  ASSAY_CHECK(read_added_tokens(document, object, file));
  if (file.tokens.empty()) return bad_input("{}: expected tokens, found none", object);
  return file;
}

}  // namespace assay::engine
