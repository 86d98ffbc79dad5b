// Reading JSON that any worker may have written: what isn't there, or is of another type, is
// absent.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"

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

// What went wrong, by a worker's message: its first line. Where it did, which torch puts on the
// same line, is in the evidence.
inline std::string first_line(const std::string& message) {
  const std::string line = message.substr(0, message.find('\n'));
  return line.substr(0, line.find(" Stack trace: "));
}

}  // namespace assay
