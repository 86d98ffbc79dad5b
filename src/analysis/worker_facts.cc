// Members of evidence.json, as docs/artifact-schema.md and docs/worker-protocol.md name them.
#include "analysis/worker_facts.h"

#include "analysis/lenient.h"
#include "analysis/samples.h"
#include "base/text.h"

namespace assay {
namespace {

std::optional<int64_t> whole(const Json& object, const char* key) {
  const Json& value = member(object, key);
  return value.is_number_integer() ? std::optional(value.get<int64_t>()) : std::nullopt;
}

std::optional<double> number(const Json& object, const char* key) {
  const Json& value = member(object, key);
  return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

// A failure outweighs a fallback, which outweighs what was foreseen.
std::string problem(const Json& evidence) {
  const Json& failures = member(evidence, "failures");
  if (failures.is_array() && !failures.empty()) {
    return fmt::format("{}: {}", text_member(failures[0], "class"),
                       first_line(text_member(failures[0], "message")));
  }
  const Json& reported = member(evidence, "reported");
  if (member(reported, "fallback").is_string()) {
    return fmt::format("ran as {}: {}", text_member(reported, "fallback"),
                       first_line(text_member(reported, "fallback_error")));
  }
  return text_member(member(evidence, "gate"), "reason");
}

CompileCost read_cost(const Json& evidence) {
  const Json& worker = member(evidence, "worker");
  const Json& reported = member(evidence, "reported");
  const Json& counters = member(reported, "counters");
  CompileCost cost;
  cost.compiler_real = text_member(evidence, "compiler_real");
  cost.prepare_s = number(worker, "prepare_seconds");
  cost.compile_s = number(member(reported, "kernels"), "compile_seconds");
  cost.graphs = whole(counters, "unique_graphs");
  cost.graph_breaks = whole(counters, "graph_breaks");
  cost.recompiles = whole(counters, "recompiles");
  cost.limit_hits = whole(counters, "recompile_limit_hits");
  cost.kernels = whole(counters, "kernels_compiled");
  cost.captures = whole(counters, "cudagraph_captures");
  cost.replays = whole(counters, "graph_replays");
  cost.skips = whole(counters, "cudagraph_skips");
  cost.problem = problem(evidence);
  return cost;
}

CellProfile read_profile(const Json& found) {
  CellProfile profile;
  const Json& summary = member(found, "summary");
  if (!summary.is_object()) {
    const Json& error = member(found, "error");
    profile.missing = error.is_object() ? fmt::format("{}: {}", text_member(error, "class"),
                                                      first_line(text_member(error, "message")))
                                        : text_member(found, "skipped");
    return profile;
  }
  profile.missing = text_member(summary, "problem");
  profile.device = text_member(summary, "device");
  profile.counts = text_member(summary, "counts");
  profile.wall_ns = whole(summary, "wall_ns");
  profile.kernels = whole(summary, "kernels_launched");
  profile.distinct_kernels = whole(summary, "distinct_kernels");
  profile.launch_calls = whole(summary, "launch_calls");
  profile.gpu_busy_ns = whole(summary, "gpu_busy_ns");
  profile.gpu_gap_ns = whole(summary, "gpu_gap_ns");
  profile.copies = whole(summary, "copies");
  profile.synchronizations = whole(summary, "synchronizations");
  const Json& top = member(summary, "top");
  if (!top.is_array()) return profile;
  for (const Json& entry : top) {
    profile.top.push_back({text_member(entry, "name"), whole(entry, "calls").value_or(0),
                           whole(entry, "total_ns").value_or(0)});
  }
  return profile;
}

const Json* evidence_of(const Bundle& bundle, const Group& group) {
  const auto found = bundle.evidence.find(group.rows.front()->cell_id);
  return found == bundle.evidence.end() ? nullptr : &found->second;
}

template <typename T>
void put(Json& json, const char* key, const std::optional<T>& value) {
  json[key] = value ? Json(*value) : Json(nullptr);
}

}  // namespace

std::vector<CompileCost> compile_costs(const Bundle& bundle, const Samples& samples) {
  std::vector<CompileCost> costs;
  for (const Group& group : samples.groups) {
    const Json* evidence = evidence_of(bundle, group);
    if (!evidence) continue;
    CompileCost cost = read_cost(*evidence);
    if (!group.wants_compiler && cost.captures.value_or(0) == 0) continue;
    cost.stratum = group.stratum;
    cost.arm = samples.arms[group.arm];
    costs.push_back(std::move(cost));
  }
  return costs;
}

std::vector<CellProfile> cell_profiles(const Bundle& bundle, const Samples& samples) {
  std::vector<CellProfile> profiles;
  for (const Group& group : samples.groups) {
    const Json* evidence = evidence_of(bundle, group);
    if (!evidence || !evidence->contains("profile")) continue;
    CellProfile& profile = profiles.emplace_back(read_profile((*evidence)["profile"]));
    profile.stratum = group.stratum;
    profile.arm = samples.arms[group.arm];
  }
  return profiles;
}

Json compile_cost_json(const CompileCost& cost) {
  Json json = {{"arm", cost.arm}, {"compiler_real", cost.compiler_real}};
  put(json, "prepare_s", cost.prepare_s);
  put(json, "compile_s", cost.compile_s);
  put(json, "graphs", cost.graphs);
  put(json, "graph_breaks", cost.graph_breaks);
  put(json, "recompiles", cost.recompiles);
  put(json, "recompile_limit_hits", cost.limit_hits);
  put(json, "kernels_compiled", cost.kernels);
  put(json, "graph_captures", cost.captures);
  put(json, "graph_replays", cost.replays);
  put(json, "graph_skips", cost.skips);
  json["problem"] = cost.problem.empty() ? Json(nullptr) : Json(cost.problem);
  return json;
}

Json cell_profile_json(const CellProfile& profile) {
  Json json = {{"arm", profile.arm}};
  json["missing"] = profile.missing.empty() ? Json(nullptr) : Json(profile.missing);
  json["device"] = profile.device.empty() ? Json(nullptr) : Json(profile.device);
  json["counts"] = profile.counts.empty() ? Json(nullptr) : Json(profile.counts);
  put(json, "wall_ns", profile.wall_ns);
  put(json, "kernels_launched", profile.kernels);
  put(json, "distinct_kernels", profile.distinct_kernels);
  put(json, "launch_calls", profile.launch_calls);
  put(json, "gpu_busy_ns", profile.gpu_busy_ns);
  put(json, "gpu_gap_ns", profile.gpu_gap_ns);
  put(json, "copies", profile.copies);
  put(json, "synchronizations", profile.synchronizations);
  json["top"] = Json::array();
  for (const ProfiledOperation& operation : profile.top) {
    json["top"].push_back(
        {{"name", operation.name}, {"calls", operation.calls}, {"total_ns", operation.total_ns}});
  }
  return json;
}

}  // namespace assay
