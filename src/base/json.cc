// JSON by nlohmann: parse errors become one line, type errors name key, expected and found.
#include "base/json.h"

#include "base/files.h"
#include "base/shown_text.h"

namespace assay {
namespace {

constexpr int kMaxNesting = 64;

// The member, or null where the object has none.
const Json* find_member(const Json& object, std::string_view key) {
  if (!object.is_object()) return nullptr;
  const auto it = object.find(std::string(key));
  return it == object.end() || it->is_null() ? nullptr : &*it;
}

std::unexpected<Error> type_error(std::string_view name, std::string_view key,
                                  std::string_view expected, const Json* found) {
  return bad_input("{}: expected {} at \"{}\", found {}", name, expected, key,
                   found ? to_json_line(*found).substr(0, 80) : "nothing");
}

}  // namespace

Result<Json> parse_json(std::string_view text, std::string_view object,
                        const Json::parser_callback_t& filter) {
  // Checked before parsing: the parser itself has no limit on its descent.
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMaxNesting) {
        return bad_input("{}: expected JSON nested at most {} levels, found more at byte {}",
                         object, kMaxNesting, i);
      }
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  try {
    return Json::parse(text, filter);
  } catch (const Json::parse_error& error) {
    std::string what = error.what();
    if (const size_t colon = what.find("] "); colon != std::string::npos) what.erase(0, colon + 2);
    for (char& c : what) {
      if (static_cast<unsigned char>(c) < 0x20) c = ' ';
    }
    return bad_input("{}: expected JSON, found {}", object, what);
  } catch (const Json::exception& error) {
    return bad_input("{}: expected JSON, found {}", object, error.what());
  }
}

Result<Json> read_json_file(const std::filesystem::path& path) {
  ASSAY_TRY(const std::string text, read_file(path));
  return parse_json(text, path.string());
}

std::string to_json_line(const Json& json) {
  return escaped_json(json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

std::string to_json_text(const Json& json) {
  return escaped_json(json.dump(2, ' ', false, Json::error_handler_t::replace)) + "\n";
}

std::string json_quoted(std::string_view text) {
  constexpr size_t kLongest = 80;
  if (text.size() <= kLongest) return to_json_line(Json(text));
  return to_json_line(Json(std::string(text.substr(0, kLongest)) + "..."));
}

Result<std::string> json_string(const Json& object, std::string_view key, std::string_view name) {
  const Json* member = find_member(object, key);
  if (!member || !member->is_string()) return type_error(name, key, "a string", member);
  return member->get<std::string>();
}

Result<int64_t> json_int(const Json& object, std::string_view key, std::string_view name) {
  const Json* member = find_member(object, key);
  const bool fits = member && member->is_number_integer() &&
                    !(member->is_number_unsigned() && member->get<uint64_t>() > INT64_MAX);
  if (!fits) return type_error(name, key, "an integer", member);
  return member->get<int64_t>();
}

Result<double> json_number(const Json& object, std::string_view key, std::string_view name) {
  const Json* member = find_member(object, key);
  if (!member || !member->is_number()) return type_error(name, key, "a number", member);
  return member->get<double>();
}

Result<bool> json_bool(const Json& object, std::string_view key, std::string_view name) {
  const Json* member = find_member(object, key);
  if (!member || !member->is_boolean()) return type_error(name, key, "true or false", member);
  return member->get<bool>();
}

Result<std::string> json_string_or(const Json& object, std::string_view key, std::string fallback,
                                   std::string_view name) {
  if (!find_member(object, key)) return fallback;
  return json_string(object, key, name);
}

Result<int64_t> json_int_or(const Json& object, std::string_view key, int64_t fallback,
                            std::string_view name) {
  if (!find_member(object, key)) return fallback;
  return json_int(object, key, name);
}

Result<double> json_number_or(const Json& object, std::string_view key, double fallback,
                              std::string_view name) {
  if (!find_member(object, key)) return fallback;
  return json_number(object, key, name);
}

Result<bool> json_bool_or(const Json& object, std::string_view key, bool fallback,
                          std::string_view name) {
  if (!find_member(object, key)) return fallback;
  return json_bool(object, key, name);
}

}  // namespace assay
