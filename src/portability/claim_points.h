// Sites at which a claim is looked at: a regime, with arms that the claim names or their like over
// another cache, or one round of a regime's processes.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "portability/claim.h"

namespace assay {

// Conditions by configuration and stratum.
class ConditionIndex {
 public:
  explicit ConditionIndex(std::span<const PortedCondition> conditions);
  // Null: there is none.
  const PortedCondition* find(const ArmConfig& config, const Stratum& stratum) const;
  // The configuration's conditions by stratum; empty: there are none.
  const std::map<Stratum, const PortedCondition*>& of(const ArmConfig& config) const;
  // Caches that some arm has.
  const std::set<std::string>& caches() const { return caches_; }

 private:
  std::map<ArmConfig, std::map<Stratum, const PortedCondition*>> by_config_;
  std::set<std::string> caches_;
};

// A place to look at.
struct ClaimSite {
  std::string name;
  size_t regime = 0;
  ArmConfig arm;
  ArmConfig than;
  std::optional<int64_t> round;  // one round of the regime's processes alone
};

// The claim at each site: points as robustness_index() takes them, on the strata that are common to
// all sites at which the claim survives.
struct ClaimPoints {
  std::vector<PerturbationPoint> points;  // one a site, in order
  std::vector<Stratum> strata;            // common ones
};

// The claim's points on strata that it covers. The first site is the reference, and the others are
// looked at on its strata.
ClaimPoints claim_points(const ConditionIndex& index, const SpeedClaim& claim,
                         std::span<const ClaimSite> sites, const PortabilityOptions& options);

// Sites along each axis, the reference first: of bundles that differ from the first on it alone; of
// processes the reference's own rounds, and bundles that differ on nothing; of caches the claim's
// like over another cache. `kinds`: perturbations_of() each regime beside the first.
std::vector<std::pair<std::string, std::vector<ClaimSite>>> sites_by_axis(
    const ConditionIndex& index, const ConfiguredClaim& claim, std::span<const Regime> regimes,
    std::span<const std::vector<std::string>> kinds);

}  // namespace assay
