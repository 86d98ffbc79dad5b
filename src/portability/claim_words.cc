// Claims as people name them.
#include <algorithm>
#include <set>

#include "base/add_once.h"
#include "base/text/text.h"
#include "portability/claim.h"

namespace assay {
namespace {

// "the first bundle measured in prefill of gpt2 at single_long".
std::string scope_text(const SpeedClaim& claim) {
  SpeedClaim scope = claim;
  scope.arm.clear();
  scope.relation = ClaimRelation::kFastest;
  return claim_text(scope).substr(std::string_view(" fastest ").size());
}

}  // namespace

Status check_portable(const SpeedClaim& claim) {
  constexpr const char* kForm = "ARM faster|slower than ARM in PHASE";
  const bool directed =
      claim.relation == ClaimRelation::kFaster || claim.relation == ClaimRelation::kSlower;
  if (!directed) {
    return bad_input("--claim: expected {}, found {}, which `assay gate` judges", kForm,
                     quoted_excerpt(claim_text(claim)));
  }
  if (claim.phase) return {};
  return bad_input("--claim: expected {}, found {}, which names no phase", kForm,
                   quoted_excerpt(claim_text(claim)));
}

Result<ConfiguredClaim> configure(const SpeedClaim& claim,
                                  std::span<const PortedCondition> conditions) {
  ASSAY_CHECK(check_portable(claim));
  ConfiguredClaim configured{.words = claim, .arm = {}, .than = {}};
  std::vector<std::string> arms;
  for (const auto& [name, config] :
       {std::pair{&claim.arm, &configured.arm}, {&claim.other, &configured.than}}) {
    bool found = false;
    for (const PortedCondition& condition : conditions) {
      const RegimeCell* cell = condition.cells.front();
      if (cell == nullptr || !claim_covers(claim, condition.stratum)) continue;
      add_once(arms, cell->arm);
      if (cell->arm != *name || found) continue;
      *config = condition.config;
      found = true;
    }
    if (!found) {
      return bad_input(
          "--claim: expected an arm that the first bundle measured {} ({}), found {}{}",
          scope_text(claim), arms.empty() ? "it has none" : join(arms, ", "), quoted_excerpt(*name),
          nearest_hint(*name, arms));
    }
  }
  if (configured.arm == configured.than) {
    return bad_input("--claim: expected two arms, found {} twice", quoted_excerpt(claim.arm));
  }
  return configured;
}

std::vector<ConfiguredClaim> claims_of_arms(std::span<const PortedCondition> conditions,
                                            const ArmConfig& baseline) {
  std::vector<ConfiguredClaim> claims;
  std::set<std::pair<Phase, ArmConfig>> seen;
  for (const PortedCondition& condition : conditions) {
    const RegimeCell* cell = condition.cells.front();
    if (cell == nullptr || condition.config == baseline) continue;
    if (seen.contains({condition.stratum.phase, condition.config})) continue;
    const auto beside = std::ranges::find_if(conditions, [&](const PortedCondition& other) {
      return other.stratum == condition.stratum && other.config == baseline &&
             other.cells.front() != nullptr;
    });
    if (beside == conditions.end()) continue;
    seen.emplace(condition.stratum.phase, condition.config);
    SpeedClaim words;
    words.arm = cell->arm;
    words.other = beside->cells.front()->arm;
    words.phase = condition.stratum.phase;
    claims.push_back({std::move(words), condition.config, baseline, true});
  }
  return claims;
}

}  // namespace assay
