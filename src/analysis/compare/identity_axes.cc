// Identity, axis by axis.
#include "analysis/compare/identity_axes.h"

#include <algorithm>
#include <set>

#include "analysis/compare/arm_facts.h"
#include "analysis/compare/environment_facts.h"
#include "analysis/compare/setting_axes.h"
#include "base/add_once.h"
#include "base/records/lenient_json.h"
#include "base/text/text.h"

namespace assay {
namespace {

std::string text(const Json& value) {
  return value.is_structured() && value.empty() ? "" : shown_text(value);
}

// framework_build without the commit that it repeats from code_sha.
std::string build_text(const Json& identity) {
  std::string build = text(member(identity, "framework_build"));
  const std::string sha = text(member(identity, "code_sha")).substr(0, 12);
  const size_t at = sha.size() < 12 ? std::string::npos : build.find(sha);
  if (at != std::string::npos) build.replace(at, sha.size(), "*");
  return build;
}

std::string joined(const std::set<std::string>& values) {
  return join(std::vector<std::string>(values.begin(), values.end()), ", ");
}

// The host's members that change how fast a program runs and that the device's name doesn't tell.
std::map<std::string, std::string> host_facts(const Json& environment) {
  const Json& host = member(environment, "host");
  std::map<std::string, std::string> facts;
  for (const char* key : {"governor", "quota_cpus", "smt_active", "last_level_cache", "sockets"}) {
    facts[fmt::format("cpu {}", key)] = text(member(member(host, "cpu"), key));
  }
  for (const char* key : {"total_bytes", "numa_nodes", "transparent_huge_pages"}) {
    facts[fmt::format("memory {}", key)] = text(member(member(host, "memory"), key));
  }
  facts["hypervisor"] = text(member(member(host, "system"), "hypervisor"));
  return facts;
}

std::map<std::string, std::string> object_facts(const Json& object) {
  std::map<std::string, std::string> facts;
  if (!object.is_object()) return facts;
  for (const auto& [key, value] : object.items()) facts[key] = text(value);
  return facts;
}

std::map<std::string, std::string> library_facts(const Json& environment) {
  std::map<std::string, std::string> facts;
  const Json& libraries = member(environment, "libraries");
  if (!libraries.is_array()) return facts;
  for (const Json& library : libraries) {
    facts[text(member(library, "name"))] = fmt::format(
        "{} {}", text(member(library, "version")), text(member(library, "sha256")).substr(0, 12));
  }
  return facts;
}

// Its place among the axes that bundles in general have; behind them all: it is none of these.
size_t axis_place(const std::string& axis) {
  const auto& axes = identity_axes();
  return static_cast<size_t>(std::ranges::find(axes, axis) - axes.begin());
}

class Differences {
 public:
  void add(const std::string& axis, const std::string& about, const std::string& base,
           const std::string& cand) {
    if (base != cand) found_.push_back({axis, about, base, cand});
  }
  void add(AxisDifference found) { found_.push_back(std::move(found)); }
  bool has(const std::string& axis, const std::string& about) const {
    return std::ranges::any_of(found_, [&](const AxisDifference& difference) {
      return difference.axis == axis && difference.about == about;
    });
  }
  // Members of both; `all`: those that only one has, too.
  void add_members(const std::string& axis, const std::map<std::string, std::string>& base,
                   const std::map<std::string, std::string>& cand, bool all) {
    for (const auto& [name, value] : base) {
      const auto other = cand.find(name);
      if (other != cand.end()) add(axis, name, value, other->second);
      if (other == cand.end() && all) add(axis, name, value, "");
    }
    for (const auto& [name, value] : cand) {
      if (all && !base.contains(name)) add(axis, name, "", value);
    }
  }
  std::vector<AxisDifference> sorted() {
    std::ranges::stable_sort(
        found_, {}, [](const AxisDifference& difference) { return axis_place(difference.axis); });
    return std::move(found_);
  }

 private:
  std::vector<AxisDifference> found_;
};

// Members of an identity that are lists of their own.
bool is_no_axis(const std::string& key) {
  return key == "arms" || key == "unknown" || key == "settings" || key == "models";
}

void add_identity(const Json& base, const Json& cand, Differences& out) {
  std::set<std::string> keys;
  for (const Json* identity : {&base, &cand}) {
    if (!identity->is_object()) continue;
    for (const auto& [key, value] : identity->items()) keys.insert(key);
  }
  for (const std::string& key : keys) {
    // A value that isn't known is no property of the measured program (unstated_axes()).
    if (is_no_axis(key) || key == "framework_build") continue;
    out.add(key, "", text(member(base, key)), text(member(cand, key)));
  }
  out.add("framework_build", "", build_text(base), build_text(cand));
}

std::string value_of(const AxisValues& of, const std::string& axis) {
  const auto at = of.find(axis);
  return at == of.end() ? "" : joined(at->second);
}

// Parts of axes on which the arm isn't known to differ already.
void add_parts(const std::string& arm, const ArmFacts& base, const ArmFacts& cand,
               Differences& out) {
  for (const auto& [axis, members] : base.parts) {
    const auto others = cand.parts.find(axis);
    if (others == cand.parts.end()) continue;
    for (const auto& [name, values] : members) {
      const auto other = others->second.find(name);
      if (other == others->second.end() || values.empty() || other->second.empty()) continue;
      if (out.has(axis, arm)) break;
      out.add(axis, arm, fmt::format("{} {}", name, joined(values)),
              fmt::format("{} {}", name, joined(other->second)));
    }
  }
}

void add_arms(const Bundle& base, const Bundle& cand, Differences& out) {
  const auto left = arm_facts(base);
  const auto right = arm_facts(cand);
  for (const auto& [arm, facts] : left) {
    const auto other = right.find(arm);
    if (other == right.end()) continue;
    std::set<std::string> axes;
    for (const auto& [axis, values] : facts.axes) axes.insert(axis);
    for (const auto& [axis, values] : other->second.axes) axes.insert(axis);
    for (const std::string& axis : axes) {
      out.add(axis, arm, value_of(facts.axes, axis), value_of(other->second.axes, axis));
    }
    add_parts(arm, facts, other->second, out);
  }
}

}  // namespace

const std::vector<std::string>& identity_axes() {
  static const std::vector<std::string> axes = {"device",          "code_generator",
                                                "framework_build", "code_sha",
                                                "cache",           "compile_mode",
                                                "dynamic",         "padding",
                                                "backend",         "dtype",
                                                "quantization",    "model",
                                                "threads",         "environment_variables",
                                                "libraries",       "host"};
  return axes;
}

std::vector<AxisDifference> identity_differences(const Bundle& base, const Bundle& cand) {
  Differences out;
  const Json& left_identity = member(base.manifest, "identity");
  const Json& right_identity = member(cand.manifest, "identity");
  add_identity(left_identity, right_identity, out);
  for (AxisDifference& each : setting_differences(left_identity, right_identity)) {
    out.add(std::move(each));
  }
  add_arms(base, cand, out);
  const auto models = [](const Bundle& bundle) {
    return object_facts(member(member(bundle.manifest, "completion"), "model_sha256"));
  };
  out.add_members("model", models(base), models(cand), false);
  EnvironmentFacts left = environment_facts(base.environment);
  EnvironmentFacts right = environment_facts(cand.environment);
  out.add("threads", "", left["threads"][""], right["threads"][""]);
  for (const char* axis : {"environment_variables", "libraries", "host"}) {
    out.add_members(axis, left[axis], right[axis], true);
  }
  return out.sorted();
}

EnvironmentFacts environment_facts(const Json& environment) {
  EnvironmentFacts facts;
  facts["threads"][""] = text(member(environment, "threads"));
  facts["environment_variables"] = object_facts(member(environment, "environment_variables"));
  facts["libraries"] = library_facts(environment);
  facts["host"] = host_facts(environment);
  return facts;
}

std::vector<UnstatedAxis> unstated_axes(const Bundle& bundle) {
  std::vector<UnstatedAxis> unstated;
  const Json& arms = member(member(bundle.manifest, "identity"), "arms");
  if (!arms.is_object()) return unstated;
  for (const auto& [arm, about] : arms.items()) {
    const Json& unknown = member(about, "unknown");
    if (!unknown.is_array()) continue;
    for (const Json& each : unknown) {
      const std::string axis = shown_text(each);
      if (axis.starts_with(kSettingAxis) || axis_place(axis) < identity_axes().size()) {
        unstated.push_back({axis, arm});
      }
    }
  }
  std::ranges::stable_sort(unstated, {},
                           [](const UnstatedAxis& each) { return axis_place(each.axis); });
  return unstated;
}

bool concerns(const AxisDifference& difference, const std::vector<std::string>& arms,
              const std::string& model) {
  if (difference.about.empty()) return true;
  for (const char* of_members : {"environment_variables", "libraries", "host"}) {
    if (difference.axis == of_members) return true;
  }
  if (difference.axis == "model") return difference.about == model;
  return std::ranges::find(arms, difference.about) != arms.end();
}

std::vector<std::string> unstated_between(const Bundle& base, const Bundle& cand) {
  std::vector<std::string> axes;
  for (const Bundle* bundle : {&base, &cand}) {
    for (UnstatedAxis& each : unstated_axes(*bundle)) {
      add_once(axes, std::move(each.axis));
    }
  }
  return axes;
}

Bundle identity_part(const Bundle& bundle) {
  Bundle part;
  part.folder = bundle.folder;
  part.manifest = bundle.manifest;
  if (part.manifest.is_object()) part.manifest.erase("files");
  part.environment = bundle.environment;
  part.complete = bundle.complete;
  part.rows_alone = bundle.rows_alone;
  std::set<std::string_view> seen;
  std::string_view last;
  for (const Row& row : bundle.rows) {
    const std::string& cell = row.cell_id;
    if ((!part.rows.empty() && cell == last) || !seen.insert(cell).second) continue;
    last = cell;
    part.rows.push_back(row);
  }
  for (const auto& [cell, evidence] : bundle.evidence) {
    Evidence& kept = part.evidence[cell];
    if (evidence.worker) {
      kept.worker.emplace();
      kept.worker->name = evidence.worker->name;
      kept.worker->version = evidence.worker->version;
    }
    if (!evidence.reported) continue;
    WorkerReport& report = kept.reported.emplace();
    report.code_generator = evidence.reported->code_generator;
    report.triton_version = evidence.reported->triton_version;
    report.whole["toolchain"] = member(evidence.reported->whole, "toolchain");
  }
  return part;
}

Result<std::string> parse_axis(const std::string& word, const Bundle& base, const Bundle& cand) {
  if (word == "gpu") return "device";
  std::vector<std::string> known = identity_axes();
  for (const Bundle* bundle : {&base, &cand}) {
    const Json& identity = member(bundle->manifest, "identity");
    if (!identity.is_object()) continue;
    for (const auto& [key, value] : identity.items()) {
      if (!is_no_axis(key)) add_once(known, key);
    }
    for (std::string& axis : setting_axes(identity)) add_once(known, std::move(axis));
  }
  if (std::ranges::find(known, word) != known.end()) return word;
  return bad_input("--vary: expected one of {}, found {}{}", join(known, ", "),
                   quoted_excerpt(word), nearest_hint(word, known));
}

}  // namespace assay
