// Environments flattened to names and values, and held against one another.
#include "analysis/rows/sittings.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/add_once.h"
#include "base/records/lenient_json.h"
#include "base/text/text.h"

namespace assay {
namespace {

constexpr std::array<std::string_view, 4> kEachTimeAnother = {
    "host.memory.available_bytes", "host.system.load_1min", "host.system.steal_share", "warnings"};

struct Fact {
  std::string field;
  std::string value;
};
using Facts = std::map<std::string, Fact>;  // by whole path

void flatten(const Json& value, const std::string& path, const std::string& field, Facts& facts) {
  if (value.is_object()) {
    for (const auto& [key, inner] : value.items()) {
      const std::string child = field.empty() ? key : field + "." + key;
      flatten(inner, path + "/" + key, path == "/arms" ? field : child, facts);
    }
    return;
  }
  const auto structured = [](const Json& element) { return element.is_structured(); };
  if (value.is_array() && std::ranges::any_of(value, structured)) {
    for (size_t i = 0; i < value.size(); ++i) {
      flatten(value[i], fmt::format("{}/{}", path, i), field, facts);
    }
    return;
  }
  const bool another = std::ranges::find(kEachTimeAnother, field) != kEachTimeAnother.end();
  if (value.is_null() || another) return;
  facts[path] = {field, shown_text(value)};
}

Facts facts_of(const Json& environment) {
  Facts facts;
  flatten(environment, "", "", facts);
  return facts;
}

// The values of one field, each once, in their order.
struct Values {
  std::vector<std::string> before;
  std::vector<std::string> now;
};

void add_value(std::vector<std::string>& values, const std::string& value) {
  if (!value.empty()) add_once(values, value);
}

}  // namespace

std::vector<EnvironmentDifference> environment_differences(const Json& before, const Json& now) {
  const Facts left = facts_of(before);
  const Facts right = facts_of(now);
  std::map<std::string, Values> by_field;
  for (const auto& [path, fact] : left) {
    const auto other = right.find(path);
    if (other != right.end() && other->second.value == fact.value) continue;
    Values& values = by_field[fact.field];
    add_value(values.before, fact.value);
    if (other != right.end()) add_value(values.now, other->second.value);
  }
  for (const auto& [path, fact] : right) {
    if (!left.contains(path)) add_value(by_field[fact.field].now, fact.value);
  }
  std::vector<EnvironmentDifference> differences;
  for (const auto& [field, values] : by_field) {
    differences.push_back({field, join(values.before, ", "), join(values.now, ", ")});
  }
  return differences;
}

std::vector<SittingSummary> summarize_sittings(const Bundle& bundle) {
  std::vector<SittingSummary> summaries;
  const auto rows = static_cast<int64_t>(bundle.rows.size());
  for (size_t i = 0; i < bundle.sittings.size(); ++i) {
    const Sitting& sitting = bundle.sittings[i];
    const int64_t end = i + 1 < bundle.sittings.size() ? bundle.sittings[i + 1].rows_before : rows;
    summaries.push_back(
        {sitting.started_at, sitting.rows_before, end - sitting.rows_before,
         i == 0 ? std::vector<EnvironmentDifference>()
                : environment_differences(bundle.sittings[0].environment, sitting.environment)});
  }
  return summaries;
}

}  // namespace assay
