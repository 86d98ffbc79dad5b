// A claim's values, site by site.
#include "portability/claim_points.h"

#include <algorithm>

#include "base/add_once.h"
#include "base/text/listed.h"
#include "base/text/text.h"

namespace assay {
namespace {

struct SiteCells {
  std::map<Stratum, std::pair<const RegimeCell*, const RegimeCell*>> cells;  // arm, than
  std::string lost;
  std::string gone;
  bool survives() const { return lost.empty() && gone.empty(); }
};

SiteCells cells_of(const ConditionIndex& index, const SpeedClaim& claim, const ClaimSite& site) {
  SiteCells found;
  for (const auto& [stratum, condition] : index.of(site.arm)) {
    if (!claim_covers(claim, stratum)) continue;
    const PortedCondition* than = index.find(site.than, stratum);
    if (than == nullptr) continue;
    const RegimeCell* of_arm = condition->cells[site.regime];
    const RegimeCell* of_than = than->cells[site.regime];
    if (of_arm != nullptr && of_than != nullptr) found.cells[stratum] = {of_arm, of_than};
  }
  return found;
}

// Rows that either arm lost, over all strata.
std::string lost_text(const SiteCells& site) {
  std::vector<std::string> parts;
  for (const bool of_arm : {true, false}) {
    int64_t lost = 0;
    int64_t attempted = 0;
    std::string name;
    for (const auto& [stratum, pair] : site.cells) {
      const RegimeCell& cell = of_arm ? *pair.first : *pair.second;
      lost += cell.crashes.lost;
      attempted += cell.crashes.attempted;
      name = cell.arm;
    }
    if (lost > 0) {
      parts.push_back(fmt::format("lost {} of {} of {}", lost, counted(attempted, "row"), name));
    }
  }
  return listed(parts);
}

bool earned(Execution execution) {
  return execution == Execution::kEager || execution == Execution::kCompiled ||
         execution == Execution::kOtherMode;
}

// The reason why nothing can be said; the first one found.
std::string gone_text(const SiteCells& site, const PortabilityOptions& options) {
  if (site.cells.empty()) return "not measured there";
  for (const auto& [stratum, pair] : site.cells) {
    if (!pair.first->void_because.empty()) return pair.first->void_because;
    if (pair.first->looked_at) {
      return "its blocks ended as soon as its arms were decided, so each prompt length has rounds "
             "of its own";
    }
    for (const RegimeCell* cell : {pair.first, pair.second}) {
      std::string reason = reason_against(*cell, options);
      if (reason.empty() && !earned(cell->execution)) {
        reason = unearned_text(cell->execution, cell->eager);
      }
      if (!reason.empty()) return fmt::format("{} {}", cell->arm, reason);
    }
  }
  return "";
}

PerturbationPoint point_at(const ClaimSite& site, const SiteCells& cells,
                           const std::vector<Stratum>& common) {
  PerturbationPoint point{.name = site.name, .lost = cells.lost, .gone = cells.gone};
  if (!cells.survives()) return point;
  std::vector<Estimate> ratios;
  for (const Stratum& stratum : common) {
    const auto& [arm, than] = cells.cells.at(stratum);
    ratios.push_back(estimate_beside(*arm, *than, site.round));
  }
  Estimate together = combine(ratios);
  point.gone = together.why_absent;
  if (point.gone.empty()) point.ratio = std::move(together);
  return point;
}

}  // namespace

ConditionIndex::ConditionIndex(std::span<const PortedCondition> conditions) {
  for (const PortedCondition& condition : conditions) {
    by_config_[condition.config][condition.stratum] = &condition;
    if (!condition.config.cache.empty()) caches_.insert(condition.config.cache);
  }
}

const PortedCondition* ConditionIndex::find(const ArmConfig& config, const Stratum& stratum) const {
  const auto& strata = of(config);
  const auto at = strata.find(stratum);
  return at == strata.end() ? nullptr : at->second;
}

const std::map<Stratum, const PortedCondition*>& ConditionIndex::of(const ArmConfig& config) const {
  static const std::map<Stratum, const PortedCondition*> kNone;
  const auto at = by_config_.find(config);
  return at == by_config_.end() ? kNone : at->second;
}

ClaimPoints claim_points(const ConditionIndex& index, const SpeedClaim& claim,
                         std::span<const ClaimSite> sites, const PortabilityOptions& options) {
  std::vector<SiteCells> all;
  for (const ClaimSite& site : sites) {
    SiteCells cells = cells_of(index, claim, site);
    if (!all.empty()) {
      std::erase_if(cells.cells,
                    [&](const auto& entry) { return !all.front().cells.contains(entry.first); });
    }
    cells.lost = lost_text(cells);
    if (cells.lost.empty()) cells.gone = gone_text(cells, options);
    all.push_back(std::move(cells));
  }
  ClaimPoints result;
  if (all.empty()) return result;
  for (const auto& [stratum, cells] : all.front().cells) {
    const bool common = std::ranges::all_of(all, [&](const SiteCells& site) {
      return !site.survives() || site.cells.contains(stratum);
    });
    if (common) result.strata.push_back(stratum);
  }
  for (size_t i = 0; i < sites.size(); ++i) {
    if (all[i].survives() && result.strata.empty()) {
      all[i].gone = "no prompt length was measured everywhere";
    }
    result.points.push_back(point_at(sites[i], all[i], result.strata));
  }
  return result;
}

std::vector<std::pair<std::string, std::vector<ClaimSite>>> sites_by_axis(
    const ConditionIndex& index, const ConfiguredClaim& claim, std::span<const Regime> regimes,
    std::span<const std::vector<std::string>> kinds) {
  const ClaimSite reference{regimes[0].name, 0, claim.arm, claim.than, {}};
  std::vector<std::string> axes = {"stack", "code", "device", "cache", "process"};
  for (const auto& of_regime : kinds) add_each_once(axes, of_regime);
  std::vector<std::pair<std::string, std::vector<ClaimSite>>> all;
  for (const std::string& axis : axes) {
    std::vector<ClaimSite> sites = {reference};
    for (size_t r = 1; r < regimes.size(); ++r) {
      const bool rerun = axis == "process" && kinds[r].empty();
      const bool alone = kinds[r].size() == 1 && kinds[r][0] == axis;
      if (rerun || alone) sites.push_back({regimes[r].name, r, claim.arm, claim.than, {}});
    }
    if (axis == "cache") {
      for (const std::string& cache : index.caches()) {
        ClaimSite site = reference;
        site.name = cache + " cache";
        site.arm.cache = site.than.cache = cache;
        site.arm.arm.clear();
        site.than.arm.clear();
        // If the claim is about the caches themselves, both would be one arm.
        const bool same =
            site.arm == site.than || (site.arm == claim.arm && site.than == claim.than);
        if (!same && !index.of(site.arm).empty() && !index.of(site.than).empty()) {
          sites.push_back(std::move(site));
        }
      }
    }
    if (axis == "process") {
      std::set<int64_t> rounds;
      for (const auto& [stratum, condition] : index.of(claim.than)) {
        const PortedCondition* arm = index.find(claim.arm, stratum);
        const bool both =
            arm != nullptr && arm->cells[0] != nullptr && condition->cells[0] != nullptr;
        if (!both || !claim_covers(claim.words, stratum)) continue;
        for (const int64_t round : rounds_beside(*arm->cells[0], *condition->cells[0])) {
          rounds.insert(round);
        }
      }
      for (const int64_t round : rounds) {
        ClaimSite site = reference;
        site.name = fmt::format("process {}", round);
        site.round = round;
        sites.push_back(std::move(site));
      }
    }
    all.emplace_back(axis, std::move(sites));
  }
  std::vector<ClaimSite> everywhere;
  for (size_t r = 0; r < regimes.size(); ++r) {
    everywhere.push_back({regimes[r].name, r, claim.arm, claim.than, {}});
  }
  all.emplace_back("all", std::move(everywhere));
  return all;
}

}  // namespace assay
