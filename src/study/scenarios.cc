// The scenarios of a study file.
#include "study/scenarios.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text.h"

namespace assay {
namespace {

constexpr size_t kMaxScenarios = 256;
constexpr size_t kMaxPrompts = 1024;

struct Builtin {
  std::string_view name;
  int64_t prompt_tokens;
};

constexpr std::array kBuiltins = {Builtin{"single_micro", 10}, Builtin{"single_short", 30},
                                  Builtin{"single_medium", 80}, Builtin{"single_long", 200},
                                  Builtin{"stress_single", 400}};

Result<StudyScenario> parse_named(const YamlValue& value) {
  const std::vector<std::string> names = builtin_scenario_names();
  const Result<size_t> index = value.one_of(names);
  if (index) return *builtin_scenario(names[*index]);
  Error error = index.error();
  error.message += "; another one is a map {name, prompt_tokens} or {name, text}";
  return std::unexpected(std::move(error));
}

Result<StudyScenario> parse_map(const YamlValue& value) {
  static const std::vector<std::string> known = {"name", "prompt_tokens", "text"};
  ASSAY_TRY(const YamlMap map, value.map(known));
  ASSAY_TRY(const YamlValue name, map.require("name"));
  const auto tokens = map.find("prompt_tokens");
  const auto text = map.find("text");
  if (!tokens && !text) return parse_named(name);
  if (tokens && text) return text->error("prompt_tokens or text", "both");
  StudyScenario scenario;
  ASSAY_TRY(scenario.name, name.text());
  if (text) {
    ASSAY_TRY(scenario.text, text->long_text());
    return scenario;
  }
  ASSAY_TRY(const std::vector<YamlValue> lengths, tokens->items());
  if (lengths.size() > kMaxPrompts) {
    return tokens->error(fmt::format("at most {} lengths", kMaxPrompts),
                         fmt::format("{}", lengths.size()));
  }
  for (const YamlValue& length : lengths) {
    ASSAY_TRY(const int64_t count, length.integer(1, kMaxTokens));
    scenario.prompt_tokens.push_back(count);
  }
  return scenario;
}

}  // namespace

std::optional<StudyScenario> builtin_scenario(std::string_view name) {
  const auto found = std::ranges::find(kBuiltins, name, &Builtin::name);
  if (found == kBuiltins.end()) return std::nullopt;
  return StudyScenario{std::string(name), {found->prompt_tokens}, ""};
}

std::vector<std::string> builtin_scenario_names() {
  std::vector<std::string> names;
  for (const Builtin& builtin : kBuiltins) names.emplace_back(builtin.name);
  return names;
}

Result<std::vector<StudyScenario>> parse_scenarios(const YamlValue& scenarios) {
  ASSAY_TRY(const std::vector<YamlValue> items, scenarios.items());
  if (items.size() > kMaxScenarios) {
    return scenarios.error(fmt::format("at most {} scenarios", kMaxScenarios),
                           fmt::format("{}", items.size()));
  }
  std::vector<StudyScenario> parsed;
  for (const YamlValue& item : items) {
    ASSAY_TRY(StudyScenario scenario, item.is_map() ? parse_map(item) : parse_named(item));
    if (std::ranges::find(parsed, scenario.name, &StudyScenario::name) != parsed.end()) {
      return item.error("each scenario once", quoted_excerpt(scenario.name) + " again");
    }
    parsed.push_back(std::move(scenario));
  }
  return parsed;
}

}  // namespace assay
