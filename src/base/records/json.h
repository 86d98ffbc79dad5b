// JSON by nlohmann, parsed without exceptions and written with keys in insertion order.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace assay {

using Json = nlohmann::ordered_json;

// `object` names the text in the error ("config.json", "line 3 of stdin"). Refuses nesting deeper
// than 64 levels, so that hostile input can't exhaust the stack. `filter`, if given, sees every key
// and value as it is read and drops it by returning false: for objects of very many members, which
// Json searches from the front.
Result<Json> parse_json(std::string_view text, std::string_view object,
                        const Json::parser_callback_t& filter = nullptr);
Result<Json> read_json_file(const std::filesystem::path& path);

// One line, invalid UTF-8 replaced, control characters of terminals escaped: never throws.
std::string to_json_line(const Json& json);
// Indented by two, newline at the end.
std::string to_json_text(const Json& json);
// A name out of a user's file as an error message shows it: quoted, control characters escaped,
// at most about 80 bytes.
std::string json_quoted(std::string_view text);

// Typed members of an object, with an error that names object, key, expected and found. The `_or`
// forms give the fallback when the key is absent or null; a present value of another type is still
// an error.
Result<std::string> json_string(const Json& object, std::string_view key, std::string_view name);
Result<int64_t> json_int(const Json& object, std::string_view key, std::string_view name);
Result<double> json_number(const Json& object, std::string_view key, std::string_view name);
Result<bool> json_bool(const Json& object, std::string_view key, std::string_view name);
Result<std::string> json_string_or(const Json& object, std::string_view key, std::string fallback,
                                   std::string_view name);
Result<int64_t> json_int_or(const Json& object, std::string_view key, int64_t fallback,
                            std::string_view name);
Result<double> json_number_or(const Json& object, std::string_view key, double fallback,
                              std::string_view name);
Result<bool> json_bool_or(const Json& object, std::string_view key, bool fallback,
                          std::string_view name);

}  // namespace assay
