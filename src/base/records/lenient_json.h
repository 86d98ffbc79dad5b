// Reading JSON that any program may have written: a member that isn't there, or is of another type,
// is absent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/records/json.h"

namespace assay {

// The member; null where there is none, or where `object` isn't one.
inline const Json& member(const Json& object, std::string_view key) {
  static const Json kNone;
  if (!object.is_object()) return kNone;
  const auto at = object.find(key);
  return at != object.end() ? *at : kNone;
}

// Empty where the member isn't a text.
inline std::string text_member(const Json& object, std::string_view key) {
  const Json& value = member(object, key);
  return value.is_string() ? value.get<std::string>() : "";
}

inline std::optional<int64_t> whole_member(const Json& object, std::string_view key) {
  const Json& value = member(object, key);
  return value.is_number_integer() ? std::optional(value.get<int64_t>()) : std::nullopt;
}

inline std::optional<double> number_member(const Json& object, std::string_view key) {
  const Json& value = member(object, key);
  return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

// The value as a person reads it, whatever its type; empty if it is null.
inline std::string shown_text(const Json& value) {
  if (value.is_null()) return "";
  return value.is_string() ? value.get<std::string>() : to_json_line(value);
}

}  // namespace assay
