// Walking the JSON of a tokenizer.json's stages.
#pragma once

#include <string>
#include <string_view>

#include "base/records/json.h"
#include "base/result.h"

namespace assay::engine {

// The member, or null where there is none.
const Json& stage_member(const Json& object, std::string_view key);

Result<const Json*> stage_list(const Json& object, std::string_view key, std::string_view name);

// A string of exactly one character; gives its UTF-8.
Result<std::string> stage_character(const Json& object, std::string_view key,
                                    std::string_view name);

// The text at "pattern": {"String": TEXT}, not empty. Another kind of pattern is an error.
Result<std::string> stage_string_pattern(const Json& stage, std::string_view name);

// Walks a stage: `visit(stage, type)` for it, or for each member of a Sequence in order; none for
// null. `list_key` is the key of the members in a Sequence of this kind of stage.
template <typename Visit>
Status walk_stage(const Json& stage, std::string_view list_key, std::string_view name,
                  const Visit& visit) {
  if (stage.is_null()) return {};
  const Json& type_json = stage_member(stage, "type");
  if (!type_json.is_string()) {
    return bad_input("{}: expected a string at \"type\", found {}", name, type_json.type_name());
  }
  const auto& type = type_json.get_ref<const std::string&>();
  if (type != "Sequence") return visit(stage, type);
  ASSAY_TRY(const Json* list, stage_list(stage, list_key, name));
  for (const Json& part : *list) ASSAY_CHECK(walk_stage(part, list_key, name, visit));
  return {};
}

}  // namespace assay::engine
