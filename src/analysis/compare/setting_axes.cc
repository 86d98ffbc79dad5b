// Settings of two identities, name by name.
#include "analysis/compare/setting_axes.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/add_once.h"
#include "base/records/lenient_json.h"
#include "base/text/text.h"

namespace assay {
namespace {

using Settings = std::map<std::string, std::string>;  // by name

void add_members(const Json& object, Settings& settings) {
  if (!object.is_object()) return;
  for (const auto& [name, value] : object.items()) settings[name] = shown_text(value);
}

// Those of all arms, with the arm's own in their place.
Settings settings_of(const Json& identity, const std::string& arm) {
  Settings settings;
  add_members(member(identity, "settings"), settings);
  add_members(member(member(member(identity, "arms"), arm), "settings"), settings);
  return settings;
}

std::map<std::string, Settings> loads_of(const Json& identity, const std::string& arm) {
  std::map<std::string, Settings> loads;
  const Json& of_arm = member(member(member(identity, "arms"), arm), "loads");
  if (!of_arm.is_object()) return loads;
  for (const auto& [scenario, settings] : of_arm.items()) add_members(settings, loads[scenario]);
  return loads;
}

// Settings of all scenarios, each with every value that it has.
Settings joined_loads(const std::map<std::string, Settings>& loads) {
  std::map<std::string, std::set<std::string>> values;
  for (const auto& [scenario, settings] : loads) {
    for (const auto& [name, value] : settings) values[name].insert(value);
  }
  Settings joined;
  for (const auto& [name, found] : values) {
    joined[name] = join(std::vector<std::string>(found.begin(), found.end()), ", ");
  }
  return joined;
}

std::vector<std::string> shared_members(const Json& base, const Json& cand) {
  std::vector<std::string> shared;
  if (!base.is_object() || !cand.is_object()) return shared;
  for (const auto& [name, value] : base.items()) {
    if (cand.contains(name)) shared.push_back(name);
  }
  return shared;
}

// Settings that were compared, by name. Equal values are kept too: they show that a difference
// isn't everywhere.
class HeldSettings {
 public:
  void hold(const std::string& arm, const std::string& scenario, const Settings& base,
            const Settings& cand) {
    std::set<std::string> names;
    for (const Settings* settings : {&base, &cand}) {
      for (const auto& [name, value] : *settings) names.insert(name);
    }
    for (const std::string& name : names) {
      held_[name].push_back({arm, scenario, value_of(base, name), value_of(cand, name)});
    }
    ++times_;
  }

  void add_differences(std::vector<AxisDifference>& out) const {
    for (const auto& [name, all] : held_) {
      const Held& first = all.front();
      const bool everywhere =
          all.size() == times_ && std::ranges::all_of(all, [&](const Held& one) {
            return one.base == first.base && one.cand == first.cand;
          });
      if (everywhere) {
        if (first.base != first.cand)
          out.push_back({kSettingAxis + name, "", first.base, first.cand});
        continue;
      }
      for (const Held& one : all) {
        if (one.base == one.cand) continue;
        const std::string at = one.scenario.empty() ? "" : one.scenario + ": ";
        out.push_back({kSettingAxis + name, one.arm, at + one.base, at + one.cand});
      }
    }
  }

 private:
  struct Held {
    std::string arm;
    std::string scenario;
    std::string base;
    std::string cand;
  };

  static std::string value_of(const Settings& settings, const std::string& name) {
    const auto at = settings.find(name);
    return at == settings.end() ? "" : at->second;
  }

  std::map<std::string, std::vector<Held>> held_;
  size_t times_ = 0;
};

void add_models(const Json& base, const Json& cand, std::vector<AxisDifference>& out) {
  for (const std::string& model : shared_members(base, cand)) {
    Settings left;
    Settings right;
    add_members(base[model], left);
    add_members(cand[model], right);
    for (const auto& [name, value] : left) right.try_emplace(name);
    for (const auto& [name, value] : right) {
      if (left[name] == value) continue;
      out.push_back({"model", model, name + " " + left[name], name + " " + value});
    }
  }
}

}  // namespace

std::vector<AxisDifference> setting_differences(const Json& base, const Json& cand) {
  HeldSettings settings;
  HeldSettings loads;
  for (const std::string& arm : shared_members(member(base, "arms"), member(cand, "arms"))) {
    settings.hold(arm, "", settings_of(base, arm), settings_of(cand, arm));
    const auto left = loads_of(base, arm);
    const auto right = loads_of(cand, arm);
    bool any = false;
    for (const auto& [scenario, of_base] : left) {
      const auto other = right.find(scenario);
      if (other == right.end()) continue;
      loads.hold(arm, scenario, of_base, other->second);
      any = true;
    }
    if (!any) loads.hold(arm, "", joined_loads(left), joined_loads(right));
  }
  std::vector<AxisDifference> out;
  settings.add_differences(out);
  loads.add_differences(out);
  add_models(member(base, "models"), member(cand, "models"), out);
  return out;
}

std::vector<std::string> setting_axes(const Json& identity) {
  std::set<std::string> names;
  const auto add = [&](const Settings& settings) {
    for (const auto& [name, value] : settings) names.insert(kSettingAxis + name);
  };
  Settings shared;
  add_members(member(identity, "settings"), shared);
  add(shared);
  const Json& arms = member(identity, "arms");
  if (arms.is_object()) {
    for (const auto& [arm, about] : arms.items()) {
      add(settings_of(identity, arm));
      add(joined_loads(loads_of(identity, arm)));
    }
  }
  return {names.begin(), names.end()};
}

}  // namespace assay
