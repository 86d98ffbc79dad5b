// Reading servers' JSON, of which nothing is certain; private to the dialects.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "backend/http/dialect.h"
#include "backend/http/http_loop.h"
#include "base/records/json.h"

namespace assay::dialect {

// The member, or null where the object has none or isn't one.
const Json& at(const Json& object, std::string_view name);
std::string text_at(const Json& object, std::string_view name);
// Whole numbers from 0 to 2^53; finite numbers from 0 on. Others count as not said.
std::optional<int64_t> count_at(const Json& object, std::string_view name);
std::optional<double> number_at(const Json& object, std::string_view name);
// The text of `error`, which servers write as a text or as an object with a message; empty: none.
std::string error_at(const Json& object);
// malformed_answer if it is no JSON object.
HttpResult<Json> object_of(std::string_view text);
// A question's answer: GET without a body, POST with one.
HttpResult<Json> ask_json(HttpLoop& loop, const HttpEndpoint& endpoint, const std::string& path,
                          const Json& body = nullptr);
// The conversation that asks for a prompt: [{"role", "content"}].
Json messages_of(const HttpPrompt& prompt);
HttpRequest post(std::string path, const Json& body);
// llama.cpp's `timings`, which stand in answers of both its APIs.
void read_timings(const Json& answer, ServerFigures& figures);

}  // namespace assay::dialect
