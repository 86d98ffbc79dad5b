// Reads the options of http arms.
#include "backend/http/http_options.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "base/text/text.h"
#include "study/command_arm.h"

namespace assay {

Result<HttpOptions> http_options(const Json& options) {
  HttpOptions read;
  ASSAY_TRY(read.api, json_string_or(options, "api", "", "options"));
  ASSAY_TRY(read.url, json_string_or(options, "url", "", "options"));
  ASSAY_TRY(read.model, json_string_or(options, "model", "", "options"));
  ASSAY_TRY(read.api_key_env, json_string_or(options, "api_key_env", "", "options"));
  const auto in_name = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  // A key that was pasted here isn't repeated.
  if (!std::ranges::all_of(read.api_key_env, in_name)) {
    return bad_input(
        "api_key_env: expected the name of an environment variable, found another text");
  }
  ASSAY_TRY(read.ca_file, json_string_or(options, "tls_ca", "", "options"));
  ASSAY_TRY(read.chat, json_bool_or(options, "chat", false, "options"));
  ASSAY_TRY(read.cached_prefix, json_int_or(options, "cached_prefix", 1, "options"));
  ASSAY_TRY(read.timeout_s, json_number_or(options, kTimeoutOption, 0, "options"));
  const auto start = options.find("start");
  if (start == options.end()) return read;
  read.start.emplace();
  read.start->url = read.url;
  read.start->ca_file = read.ca_file;
  ASSAY_TRY(read.start->ready, json_string_or(options, "ready", "/health", "options"));
  if (!start->is_array() || start->empty())
    return bad_input("options: start: expected a list of arguments");
  for (const Json& argument : *start) {
    if (!argument.is_string())
      return bad_input("options: start: expected texts, found {}", to_json_line(argument));
    read.start->argv.push_back(argument.get<std::string>());
  }
  if (const auto variables = options.find("env");
      variables != options.end() && variables->is_object()) {
    for (const auto& [name, value] : variables->items()) {
      if (value.is_string()) read.start->environment.emplace_back(name, value.get<std::string>());
    }
  }
  if (read.timeout_s > 0)
    read.start->timeout_s = std::max(read.timeout_s * 0.5, read.timeout_s - 12);
  return read;
}

Result<std::string> api_key_of(const HttpOptions& options) {
  if (options.api_key_env.empty()) return std::string();
  const char* const key = std::getenv(options.api_key_env.c_str());
  if (key == nullptr || *key == '\0') {
    return bad_input("api_key_env: expected the server's key in the variable {}, found none",
                     options.api_key_env);
  }
  const std::string found(key);
  const auto is_plain = [](unsigned char c) { return c > ' ' && c < 127; };
  if (!std::ranges::all_of(found, is_plain)) {
    return bad_input(
        "api_key_env: expected a key of printable characters in the variable {}, found others",
        options.api_key_env);
  }
  return found;
}

Result<HttpEndpoint> endpoint_of(const HttpOptions& options, ServerUrl url) {
  HttpEndpoint endpoint{std::move(url), "", options.ca_file};
  ASSAY_TRY(endpoint.api_key, api_key_of(options));
  return endpoint;
}

HttpLimits generation_limits(const HttpOptions& options) {
  HttpLimits limits;
  if (options.timeout_s > 0)
    limits.total_s = std::max(options.timeout_s * 0.95, options.timeout_s - 1);
  limits.silence_s = limits.total_s / 2;
  return limits;
}

}  // namespace assay
