// Members of a stage's JSON, for the readers of the stages.
#include "engine/tokenizer/stages/stage_json.h"

#include "engine/tokenizer/unicode.h"

namespace assay::engine {

const Json& stage_member(const Json& object, std::string_view key) {
  static const Json kNothing;
  if (!object.is_object()) return kNothing;
  const auto it = object.find(std::string(key));
  return it == object.end() ? kNothing : *it;
}

Result<const Json*> stage_list(const Json& object, std::string_view key, std::string_view name) {
  const Json& list = stage_member(object, key);
  if (!list.is_array()) {
    return bad_input("{}: expected a list at \"{}\", found {}", name, key, list.type_name());
  }
  return &list;
}

Result<std::string> stage_character(const Json& object, std::string_view key,
                                    std::string_view name) {
  ASSAY_TRY(std::string text, json_string(object, key, name));
  if (text.empty() || read_utf8(text, 0).size != text.size()) {
    return bad_input("{}: expected one character at \"{}\", found {}", name, key,
                     json_quoted(text));
  }
  return text;
}

Result<std::string> stage_string_pattern(const Json& stage, std::string_view name) {
  const Json& pattern = stage_member(stage, "pattern");
  if (!stage_member(pattern, "Regex").is_null()) {
    return bad_input("{}: expected Replace of a String, found a Regex", name);
  }
  ASSAY_TRY(std::string text, json_string(pattern, "String", name));
  if (text.empty()) return bad_input("{}: expected Replace of text, found an empty String", name);
  return text;
}

}  // namespace assay::engine
