// Servers' JSON, read with a shrug where they differ.
#include "backend/http/dialect_json.h"

#include <cmath>

#include "base/text/text.h"

namespace assay::dialect {
namespace {

constexpr double kQuestionSeconds = 10;
constexpr int64_t kMostCount = int64_t{1} << 53;

}  // namespace

const Json& at(const Json& object, std::string_view name) {
  static const Json null;
  if (!object.is_object()) return null;
  const auto found = object.find(name);
  return found == object.end() ? null : *found;
}

std::string text_at(const Json& object, std::string_view name) {
  const Json& member = at(object, name);
  constexpr size_t kMostText = 64u << 10;  // of a chunk, or of a template
  return member.is_string() ? member.get<std::string>().substr(0, kMostText) : "";
}

std::optional<int64_t> count_at(const Json& object, std::string_view name) {
  const auto number = number_at(object, name);
  if (!number || *number > static_cast<double>(kMostCount) || *number != std::floor(*number))
    return std::nullopt;
  return static_cast<int64_t>(*number);
}

std::optional<double> number_at(const Json& object, std::string_view name) {
  const Json& member = at(object, name);
  if (!member.is_number()) return std::nullopt;
  const double number = member.get<double>();
  constexpr double kMostNumber = 1e17;  // beyond any count, and any time in nanoseconds
  return number >= 0 && number <= kMostNumber ? std::optional(number) : std::nullopt;
}

std::string error_at(const Json& object) {
  const Json& error = at(object, "error");
  if (error.is_string()) return error.get<std::string>();
  if (!error.is_object()) return "";
  const std::string message = text_at(error, "message");
  return message.empty() ? to_json_line(error) : message;
}

HttpResult<Json> object_of(std::string_view text) {
  auto json = parse_json(text, "the server's answer");
  if (!json) {
    const bool meant_so = text.starts_with('{');  // the place of the error says more then
    return http_failure(
        http_class::kMalformed,
        meant_so ? json.error().message : "expected a JSON object, found " + quoted_excerpt(text));
  }
  if (!json->is_object()) {
    return http_failure(http_class::kMalformed,
                        "expected a JSON object, found " + json_quoted(text));
  }
  return *std::move(json);
}

void read_timings(const Json& answer, ServerFigures& figures) {
  const Json& timings = at(answer, "timings");
  const auto computed = count_at(timings, "prompt_n"), cached = count_at(timings, "cache_n");
  if (cached) figures.cached_tokens = cached;
  if (computed && cached) figures.prompt_tokens = *computed + *cached;
  if (const auto ms = number_at(timings, "prompt_ms")) figures.prompt_ms = ms;
  if (const auto ms = number_at(timings, "predicted_ms")) figures.generation_ms = ms;
  if (const auto count = count_at(timings, "predicted_n")) figures.new_tokens = count;
}

Json messages_of(const HttpPrompt& prompt) {
  Json messages = Json::array();
  for (const std::string& said : prompt.history)
    messages.push_back(
        {{"role", messages.size() % 2 == 0 ? "user" : "assistant"}, {"content", said}});
  messages.push_back({{"role", "user"}, {"content", prompt.text}});
  return messages;
}

HttpRequest post(std::string path, const Json& body) {
  return {"POST", std::move(path), to_json_line(body)};
}

HttpResult<Json> ask_json(HttpLoop& loop, const HttpEndpoint& endpoint, const std::string& path,
                          const Json& body) {
  HttpLimits limits;
  limits.total_s = kQuestionSeconds;
  HttpRequest request = body.is_null() ? HttpRequest{"GET", path} : post(path, body);
  auto answer = ask(loop, endpoint, std::move(request), limits);
  if (!answer) return std::unexpected(std::move(answer).error());
  return object_of(answer->body);
}

}  // namespace assay::dialect
