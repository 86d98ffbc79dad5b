// Keys of http arms.
#include "study/http_arm.h"

#include <algorithm>

#include "base/text/text.h"
#include "study/program_keys.h"

namespace assay {
namespace {

constexpr int64_t kMaxCachedPrefix = 100'000;

bool is_variable_name(std::string_view name) {
  const auto in_name = [](unsigned char c) { return std::isalnum(c) || c == '_'; };
  return !name.empty() && !std::isdigit(static_cast<unsigned char>(name.front())) &&
         std::ranges::all_of(name, in_name);
}

Result<std::string> read_program_text(const YamlValue& value) {
  return value.any_text();
}

}  // namespace

Result<Json> read_api(const YamlValue& value) {
  static const std::vector<std::string> words = {"openai", "ollama", "llama_server"};
  ASSAY_TRY(const size_t index, value.one_of(words));
  return Json(words[index]);
}

Result<Json> read_start(const YamlValue& value) {
  return read_arguments(value, read_program_text);
}

Result<Json> read_server_environment(const YamlValue& value) {
  return read_variables(value, read_program_text);
}

Result<Json> read_variable_name(const YamlValue& value) {
  ASSAY_TRY(std::string text, value.text());
  // A key that is pasted here by mistake isn't repeated.
  if (!is_variable_name(text))
    return value.error("the name of an environment variable", "another text");
  return Json(std::move(text));
}

Result<Json> read_cached_prefix(const YamlValue& value) {
  ASSAY_TRY(const int64_t tokens, value.integer(0, kMaxCachedPrefix));
  return Json(tokens);
}

Status check_http_arm(const StudyArm& arm, const YamlValue& value) {
  const bool starts = arm.options.contains("start");
  if (!starts && !arm.options.contains("url")) {
    return value.error(
        "`url` (of a server that runs) or `start` (the command of one that is started for the arm)",
        "neither");
  }
  for (const char* const key : {"env", "ready"}) {
    if (!starts && arm.options.contains(key)) {
      return value.error(fmt::format("`{}` beside `start` alone", key), "no `start`");
    }
  }
  return {};
}

}  // namespace assay
