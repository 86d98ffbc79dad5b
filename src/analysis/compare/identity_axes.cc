// Identity, axis by axis.
#include "analysis/compare/identity_axes.h"

#include <algorithm>
#include <set>

#include "base/lenient_json.h"
#include "base/text.h"

namespace assay {
namespace {

std::string text(const Json& value) {
  if (value.is_null() || (value.is_structured() && value.empty())) return "";
  return value.is_string() ? value.get<std::string>() : to_json_line(value);
}

// framework_build without the commit that it repeats from code_sha.
std::string build_text(const Json& identity) {
  std::string build = text(member(identity, "framework_build"));
  const std::string sha = text(member(identity, "code_sha")).substr(0, 12);
  const size_t at = sha.size() < 12 ? std::string::npos : build.find(sha);
  if (at != std::string::npos) build.replace(at, sha.size(), "*");
  return build;
}

// What is recorded of an arm: its name to axis to values, those of several cells joined.
using ArmFacts = std::map<std::string, std::map<std::string, std::set<std::string>>>;

// Of an arm's identity what isn't the run's: a GPU, another framework, a checkout. A native arm's
// framework is the program, whose build is the run's or, side by side, what is compared.
void add_own_identity(const Bundle& bundle, const Row& row,
                      std::map<std::string, std::set<std::string>>& arm) {
  const Json& own = member(member(member(bundle.manifest, "identity"), "arms"), row.arm.str());
  for (const char* axis : {"device", "framework_build", "code_sha"}) {
    if (row.backend == "native" && std::string_view(axis) != "device") continue;
    if (std::string value = text(member(own, axis)); !value.empty()) {
      arm[axis].insert(std::move(value));
    }
  }
}

ArmFacts arm_facts(const Bundle& bundle) {
  ArmFacts facts;
  std::set<std::string> seen;
  for (const Row& row : bundle.rows) {
    if (!seen.insert(row.cell_id).second) continue;
    auto& arm = facts[row.arm];
    for (const auto& [axis, value] :
         {std::pair<const char*, const std::string&>{"backend", row.backend},
          {"dtype", row.dtype},
          {"quantization", row.quantization},
          {"cache", row.cache},
          {"compile_mode", row.compile_mode},
          {"dynamic", row.dynamic},
          {"padding", row.padding}}) {
      if (!value.empty()) arm[axis].insert(value);
    }
    add_own_identity(bundle, row, arm);
    const auto evidence = bundle.evidence.find(row.cell_id);
    if (evidence == bundle.evidence.end()) continue;
    const auto& report = evidence->second.reported;
    if (report && !report->code_generator.empty()) {
      arm["code_generator"].insert(report->code_generator);
    }
  }
  return facts;
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

class Differences {
 public:
  void add(const std::string& axis, const std::string& about, const std::string& base,
           const std::string& cand) {
    if (base != cand) found_.push_back({axis, about, base, cand});
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
    const auto& axes = identity_axes();
    std::ranges::stable_sort(found_, {}, [&](const AxisDifference& difference) {
      return std::ranges::find(axes, difference.axis) - axes.begin();
    });
    return std::move(found_);
  }

 private:
  std::vector<AxisDifference> found_;
};

void add_identity(const Json& base, const Json& cand, Differences& out) {
  std::set<std::string> keys;
  for (const Json* identity : {&base, &cand}) {
    if (!identity->is_object()) continue;
    for (const auto& [key, value] : identity->items()) keys.insert(key);
  }
  for (const std::string& key : keys) {
    if (key == "arms" || key == "framework_build") continue;
    out.add(key, "", text(member(base, key)), text(member(cand, key)));
  }
  out.add("framework_build", "", build_text(base), build_text(cand));
}

void add_arms(const Bundle& base, const Bundle& cand, Differences& out) {
  const ArmFacts left = arm_facts(base);
  const ArmFacts right = arm_facts(cand);
  for (const auto& [arm, facts] : left) {
    const auto other = right.find(arm);
    if (other == right.end()) continue;
    std::set<std::string> axes;
    for (const auto& [axis, values] : facts) axes.insert(axis);
    for (const auto& [axis, values] : other->second) axes.insert(axis);
    const auto value = [](const auto& of, const std::string& axis) {
      const auto at = of.find(axis);
      return at == of.end() ? "" : joined(at->second);
    };
    for (const std::string& axis : axes) {
      out.add(axis, arm, value(facts, axis), value(other->second, axis));
    }
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
  add_identity(member(base.manifest, "identity"), member(cand.manifest, "identity"), out);
  add_arms(base, cand, out);
  const auto models = [](const Bundle& bundle) {
    return object_facts(member(member(bundle.manifest, "completion"), "model_sha256"));
  };
  out.add_members("model", models(base), models(cand), false);
  out.add("threads", "", text(member(base.environment, "threads")),
          text(member(cand.environment, "threads")));
  out.add_members("environment_variables",
                  object_facts(member(base.environment, "environment_variables")),
                  object_facts(member(cand.environment, "environment_variables")), true);
  out.add_members("libraries", library_facts(base.environment), library_facts(cand.environment),
                  true);
  out.add_members("host", host_facts(base.environment), host_facts(cand.environment), true);
  return out.sorted();
}

Result<std::string> parse_axis(const std::string& word, const Bundle& base, const Bundle& cand) {
  if (word == "gpu") return "device";
  std::vector<std::string> known = identity_axes();
  for (const Bundle* bundle : {&base, &cand}) {
    const Json& identity = member(bundle->manifest, "identity");
    if (!identity.is_object()) continue;
    for (const auto& [key, value] : identity.items()) {
      if (key != "arms" && std::ranges::find(known, key) == known.end()) known.push_back(key);
    }
  }
  if (std::ranges::find(known, word) != known.end()) return word;
  return bad_input("--vary: expected one of {}, found {}{}", join(known, ", "),
                   quoted_excerpt(word), nearest_hint(word, known));
}

}  // namespace assay
