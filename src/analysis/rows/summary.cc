// Reads a bundle's study from its manifest.
#include "analysis/rows/summary.h"

#include <algorithm>

#include "base/add_once.h"
#include "base/records/lenient_json.h"

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

// The order of the arms: as the study lists them, else as the rows do.
std::vector<std::string> arm_names(const Json& study, const std::vector<Row>& rows) {
  std::vector<std::string> arms;
  const auto add = [&](const std::string& name) {
    if (!name.empty()) add_once(arms, name);
  };
  const Json& listed = member(study, "arms");
  for (const Json& arm : listed.is_array() ? listed : Json::array()) {
    add(arm.is_string() ? arm.get<std::string>() : text_member(arm, "name"));
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
  flatten(member(manifest, "identity"), "", lines);
  flatten(member(manifest, "assay_version"), "assay_version", lines);
  flatten(member(manifest, "plan_sha256"), "plan_sha256", lines);
  flatten(member(member(manifest, "completion"), "model_sha256"), "model_sha256", lines);
  return lines;
}

StudySummary summarize(const Bundle& bundle) {
  const Json& study = member(bundle.manifest, "study");
  StudySummary summary;
  summary.name = text_member(study, "name");
  summary.order = text_member(study, "order");
  summary.seed = whole_member(study, "seed");
  summary.warmup = whole_member(study, "warmup");
  summary.repetitions = whole_member(study, "repetitions");
  summary.started_at = text_member(bundle.manifest, "started_at");
  summary.complete = bundle.complete;
  summary.rows = static_cast<int64_t>(bundle.rows.size());
  summary.arms = arm_names(study, bundle.rows);
  summary.baseline = text_member(study, "baseline");
  const auto baseline = std::ranges::find(summary.arms, summary.baseline);
  if (baseline != summary.arms.end()) {
    std::rotate(summary.arms.begin(), baseline, baseline + 1);
  } else if (!summary.arms.empty()) {
    summary.baseline = summary.arms[0];
  }
  return summary;
}

}  // namespace assay
