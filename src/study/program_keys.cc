// Bounds and shapes of a program's arguments and variables.
#include "study/program_keys.h"

#include "base/text/text.h"

namespace assay {
namespace {

constexpr size_t kMaxArguments = 1024;
constexpr size_t kMaxVariables = 256;

}  // namespace

Result<Json> read_arguments(const YamlValue& list, ReadProgramText read_text) {
  ASSAY_TRY(const std::vector<YamlValue> items, list.items());
  if (items.size() > kMaxArguments) {
    return list.error(fmt::format("at most {} arguments", kMaxArguments),
                      fmt::format("{}", items.size()));
  }
  Json arguments = Json::array();
  for (const YamlValue& item : items) {
    ASSAY_TRY(std::string text, read_text(item));
    if (arguments.empty() && text.empty()) return item.error("a program's name", "nothing");
    arguments.push_back(std::move(text));
  }
  return arguments;
}

Result<Json> read_variables(const YamlValue& map, ReadProgramText read_text) {
  ASSAY_TRY(const auto entries, map.entries());
  if (entries.size() > kMaxVariables) {
    return map.error(fmt::format("at most {} variables", kMaxVariables),
                     fmt::format("{}", entries.size()));
  }
  Json variables = Json::object();
  for (const auto& [name, item] : entries) {
    if (name.empty() || name.find('=') != std::string::npos) {
      return item.error("a variable's name", quoted_excerpt(name));
    }
    ASSAY_TRY(std::string text, read_text(item));
    variables[name] = std::move(text);
  }
  return variables;
}

}  // namespace assay
