// Reads a bundle's study from its manifest.
#include "analysis/rows/summary.h"

#include <algorithm>

#include "base/add_once.h"

namespace assay {
namespace {

// Nested objects become dotted names; null and empty values are left out.
void flatten(const Json& json, const std::string& name,
             std::vector<std::pair<std::string, std::string>>& out) {
  if (json.is_object()) {
    for (const auto& [key, value] : json.items()) {
      flatten(value, name.empty() ? key : name + "." + key, out);
    }
  } else if (json.is_string()) {
    if (!json.get_ref<const std::string&>().empty()) out.emplace_back(name, json);
  } else if (!json.is_null() && !json.empty()) {
    out.emplace_back(name, to_json_line(json));
  }
}

std::optional<int64_t> optional_int(const Json& object, const char* key) {
  const auto at = object.find(key);
  if (at == object.end() || !at->is_number_integer()) return std::nullopt;
  return at->get<int64_t>();
}

std::string optional_string(const Json& object, const char* key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_string() ? at->get<std::string>() : "";
}

// The order of the arms: as the study lists them, else as the rows do.
std::vector<std::string> arm_names(const Json& study, const std::vector<Row>& rows) {
  std::vector<std::string> arms;
  const auto add = [&](const std::string& name) {
    if (!name.empty()) add_once(arms, name);
  };
  const auto listed = study.find("arms");
  if (listed != study.end() && listed->is_array()) {
    for (const Json& arm : *listed) {
      if (arm.is_string()) add(arm.get<std::string>());
      if (arm.is_object()) add(optional_string(arm, "name"));
    }
  }
  const SharedText* last = nullptr;
  for (const Row& row : rows) {
    if (last == nullptr || row.arm != *last) add(row.arm);
    last = &row.arm;
  }
  return arms;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> identity_lines(const Json& manifest) {
  std::vector<std::pair<std::string, std::string>> lines;
  const auto add = [&](const Json& object, const char* key, const char* name) {
    const auto at = object.is_object() ? object.find(key) : object.end();
    if (at != object.end()) flatten(*at, name, lines);
  };
  add(manifest, "identity", "");
  add(manifest, "assay_version", "assay_version");
  add(manifest, "plan_sha256", "plan_sha256");
  const auto completion = manifest.find("completion");
  if (completion != manifest.end()) add(*completion, "model_sha256", "model_sha256");
  return lines;
}

StudySummary summarize(const Bundle& bundle) {
  const Json none = Json::object();
  const auto at = bundle.manifest.find("study");
  const Json& study = at != bundle.manifest.end() && at->is_object() ? *at : none;
  StudySummary summary;
  summary.name = optional_string(study, "name");
  summary.order = optional_string(study, "order");
  summary.seed = optional_int(study, "seed");
  summary.warmup = optional_int(study, "warmup");
  summary.repetitions = optional_int(study, "repetitions");
  summary.started_at = optional_string(bundle.manifest, "started_at");
  summary.complete = bundle.complete;
  summary.rows = static_cast<int64_t>(bundle.rows.size());
  summary.arms = arm_names(study, bundle.rows);
  summary.baseline = optional_string(study, "baseline");
  const auto baseline = std::ranges::find(summary.arms, summary.baseline);
  if (baseline != summary.arms.end()) {
    std::rotate(summary.arms.begin(), baseline, baseline + 1);
  } else if (!summary.arms.empty()) {
    summary.baseline = summary.arms[0];
  }
  return summary;
}

}  // namespace assay
