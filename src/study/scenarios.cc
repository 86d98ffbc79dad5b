// The scenarios of a study file.
#include "study/scenarios.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "base/text/text.h"

namespace assay {
namespace {

constexpr size_t kMaxScenarios = 256;
constexpr size_t kMaxPrompts = 1024;
constexpr size_t kMaxListed = 64;  // batch sizes, decode lengths

struct Builtin {
  std::string_view name;
  int64_t prompt_tokens;
};

constexpr std::array kBuiltins = {Builtin{"single_micro", 10}, Builtin{"single_short", 30},
                                  Builtin{"single_medium", 80}, Builtin{"single_long", 200},
                                  Builtin{"stress_single", 400}};

// The 512 of "prompt_512".
std::optional<int64_t> named_length(std::string_view name) {
  constexpr std::string_view kPrefix = "prompt_";
  if (!name.starts_with(kPrefix) || name.substr(kPrefix.size()).starts_with('0')) {
    return std::nullopt;
  }
  int64_t tokens = 0;
  const char* const end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + kPrefix.size(), end, tokens);
  if (error != std::errc() || stop != end || tokens < 1 || tokens > kMaxTokens) return std::nullopt;
  return tokens;
}

Result<StudyScenario> parse_named(const YamlValue& value) {
  if (const auto text = value.text()) {
    if (auto builtin = builtin_scenario(*text)) return *std::move(builtin);
  }
  Error error = value.one_of(builtin_scenario_names()).error();
  error.message +=
      "; prompt_N has N tokens, and any other scenario is a map {name, prompt_tokens} or {name, "
      "text}";
  return std::unexpected(std::move(error));
}

Result<StudyScenario> parse_prompts(const YamlMap& map) {
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

Result<StudyScenario> parse_map(const YamlValue& value, std::span<const Phase> phases) {
  static const std::vector<std::string> known = {"name", "prompt_tokens", "text", "phases"};
  ASSAY_TRY(const YamlMap map, value.map(known));
  ASSAY_TRY(StudyScenario scenario, parse_prompts(map));
  if (const auto own = map.find("phases")) {
    ASSAY_TRY(scenario.phases, parse_phases(*own, phases));
  }
  return scenario;
}

}  // namespace

Result<std::vector<int64_t>> parse_integers(const YamlValue& value, int64_t max) {
  ASSAY_TRY(const std::vector<YamlValue> items, value.items());
  if (items.size() > kMaxListed) {
    return value.error(fmt::format("at most {} values", kMaxListed),
                       fmt::format("{}", items.size()));
  }
  std::vector<int64_t> integers;
  for (const YamlValue& item : items) {
    ASSAY_TRY(const int64_t integer, item.integer(1, max));
    if (std::ranges::find(integers, integer) != integers.end()) {
      return item.error("each value once", fmt::format("{} again", integer));
    }
    integers.push_back(integer);
  }
  return integers;
}

bool runs_in(const StudyScenario& scenario, Phase phase) {
  return scenario.phases.empty() ||
         std::ranges::find(scenario.phases, phase) != scenario.phases.end();
}

Result<std::vector<Phase>> parse_phases(const YamlValue& value, std::span<const Phase> known) {
  ASSAY_TRY(const std::vector<YamlValue> items, value.items());
  std::vector<std::string> names;
  for (const Phase phase : known) names.emplace_back(phase_name(phase));
  std::vector<Phase> phases;
  for (const YamlValue& item : items) {
    ASSAY_TRY(const size_t index, item.one_of(names));
    if (std::ranges::find(phases, known[index]) != phases.end()) {
      return item.error("each once", quoted_excerpt(names[index]) + " again");
    }
    phases.push_back(known[index]);
  }
  std::ranges::sort(phases);
  return phases;
}

std::optional<StudyScenario> builtin_scenario(std::string_view name) {
  if (const auto tokens = named_length(name)) {
    return StudyScenario{std::string(name), {*tokens}, ""};
  }
  const auto found = std::ranges::find(kBuiltins, name, &Builtin::name);
  if (found == kBuiltins.end()) return std::nullopt;
  return StudyScenario{std::string(name), {found->prompt_tokens}, ""};
}

std::vector<std::string> builtin_scenario_names() {
  std::vector<std::string> names;
  for (const Builtin& builtin : kBuiltins) names.emplace_back(builtin.name);
  return names;
}

Result<std::vector<StudyScenario>> parse_scenarios(const YamlValue& scenarios,
                                                   std::span<const Phase> phases) {
  ASSAY_TRY(const std::vector<YamlValue> items, scenarios.items());
  if (items.size() > kMaxScenarios) {
    return scenarios.error(fmt::format("at most {} scenarios", kMaxScenarios),
                           fmt::format("{}", items.size()));
  }
  std::vector<StudyScenario> parsed;
  for (const YamlValue& item : items) {
    ASSAY_TRY(StudyScenario scenario, item.is_map() ? parse_map(item, phases) : parse_named(item));
    if (std::ranges::find(parsed, scenario.name, &StudyScenario::name) != parsed.end()) {
      return item.error("each scenario once", quoted_excerpt(scenario.name) + " again");
    }
    parsed.push_back(std::move(scenario));
  }
  return parsed;
}

}  // namespace assay
