// Cells of several bundles, matched.
#include "portability/condition.h"

#include <algorithm>
#include <map>
#include <set>

#include "analysis/compare/compare.h"
#include "base/records/lenient_json.h"

namespace assay {
namespace {

// Configurations that two arms of some bundle share on a stratum.
std::set<ArmConfig> shared_configs(std::span<const Regime> regimes) {
  std::set<ArmConfig> shared;
  for (const Regime& regime : regimes) {
    std::set<std::pair<Stratum, ArmConfig>> seen;
    for (const RegimeCell& cell : regime.cells) {
      if (!seen.emplace(cell.stratum, cell.config).second) shared.insert(cell.config);
    }
  }
  return shared;
}

// Identities too name arms by their configuration, so that an arm to which another study gives
// another name is still held against its like.
void name_by_config(Regime& regime) {
  std::map<std::string, std::string> names;
  for (const RegimeCell& cell : regime.cells) {
    names.try_emplace(cell.arm, config_text(cell.config));
  }
  const auto name_of = [&](const std::string& arm) {
    const auto at = names.find(arm);
    return at == names.end() ? arm : at->second;
  };
  for (Row& row : regime.who.rows) row.arm = name_of(row.arm);
  const auto rename = [&](Json& whole) {
    if (!member(whole, "arms").is_object()) return;
    Json renamed = Json::object();
    for (const auto& [arm, about] : whole["arms"].items()) renamed[name_of(arm)] = about;
    whole["arms"] = std::move(renamed);
  };
  if (regime.who.manifest.contains("identity")) rename(regime.who.manifest["identity"]);
  rename(regime.who.environment);
}

}  // namespace

const std::string& PortedCondition::arm() const {
  static const std::string kNone;
  const auto any =
      std::ranges::find_if(cells, [](const RegimeCell* cell) { return cell != nullptr; });
  return any == cells.end() ? kNone : (*any)->arm;
}

std::vector<PortedCondition> match_conditions(std::span<Regime> regimes) {
  const std::set<ArmConfig> shared = shared_configs(regimes);
  std::vector<PortedCondition> conditions;
  std::map<std::pair<Stratum, ArmConfig>, size_t> places;
  for (size_t r = 0; r < regimes.size(); ++r) {
    for (RegimeCell& cell : regimes[r].cells) {
      if (shared.contains(cell.config)) cell.config.arm = cell.arm;
      const auto [at, fresh] = places.try_emplace({cell.stratum, cell.config}, conditions.size());
      if (fresh) {
        conditions.push_back({cell.stratum, cell.config, {}});
        conditions.back().cells.resize(regimes.size());
      }
      conditions[at->second].cells[r] = &cell;
    }
  }
  for (Regime& regime : regimes) name_by_config(regime);
  // Strata in the order in which they first appear, phase by phase.
  std::map<Stratum, size_t> order;
  for (const PortedCondition& c : conditions) order.try_emplace(c.stratum, order.size());
  std::ranges::stable_sort(conditions, {}, [&](const PortedCondition& c) {
    return std::pair(c.stratum.phase, order.at(c.stratum));
  });
  return conditions;
}

std::string condition_text(const PortedCondition& condition) {
  return fmt::format("{} on {}", condition.arm(), stratum_text(condition.stratum));
}

void name_apart(std::span<Regime> regimes) {
  std::map<std::string, int> times;
  for (const Regime& regime : regimes) ++times[regime.name];
  for (Regime& regime : regimes) {
    if (times[regime.name] > 1 || regime.name.empty()) regime.name = regime.folder;
  }
}

}  // namespace assay
