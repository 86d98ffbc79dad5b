// Several bundles, from conditions to claims.
#include "portability/portability.h"

#include <algorithm>
#include <functional>

#include "base/add_once.h"
#include "base/text/text.h"

namespace assay {
namespace {

// The configuration of the first regime's baseline; of its first cell, if its arms differ in it.
Result<const RegimeCell*> baseline_cell(const Regime& first) {
  const auto cell = std::ranges::find(first.cells, first.baseline, &RegimeCell::arm);
  if (cell != first.cells.end()) return &*cell;
  return bad_input("{}: expected rows of its baseline {}, found none", first.folder,
                   quoted_excerpt(first.baseline));
}

// The members of a condition of which two regimes have no value in common: "cache is dynamic
// instead of static".
std::string apart_text(const Regime& first, const Regime& other) {
  using Value = std::function<std::string(const RegimeCell&)>;
  const std::vector<std::pair<const char*, Value>> members = {
      {"model", [](const RegimeCell& cell) { return cell.stratum.model; }},
      {"phase", [](const RegimeCell& cell) { return std::string(phase_name(cell.stratum.phase)); }},
      {"scenario", [](const RegimeCell& cell) { return cell.stratum.scenario; }},
      {"new_tokens",
       [](const RegimeCell& cell) { return std::to_string(cell.stratum.new_tokens); }},
      {"batch", [](const RegimeCell& cell) { return std::to_string(cell.stratum.batch); }},
      {"cache", [](const RegimeCell& cell) { return cell.config.cache; }},
      {"mode", [](const RegimeCell& cell) { return cell.config.mode; }},
      {"dynamic", [](const RegimeCell& cell) { return cell.config.dynamic; }},
      {"quantisation", [](const RegimeCell& cell) { return cell.config.quantization; }}};
  std::vector<std::string> apart;
  for (const auto& [name, value] : members) {
    std::vector<std::string> here;
    std::vector<std::string> there;
    for (const auto& [regime, values] : {std::pair(&first, &there), {&other, &here}}) {
      for (const RegimeCell& cell : regime->cells) {
        const std::string one = value(cell);
        const std::string shown = one.empty() ? "not stated" : excerpt(one);
        add_once(*values, shown);
      }
    }
    if (std::ranges::find_first_of(here, there) != here.end()) continue;
    apart.push_back(
        fmt::format("{} is {} instead of {}", name, join(here, ", "), join(there, ", ")));
  }
  return apart.empty() ? "" : ": " + join(apart, "; ");
}

Status check_common(const Portability& of) {
  for (size_t r = 1; r < of.regimes.size(); ++r) {
    const bool any = std::ranges::any_of(of.conditions, [&](const PortedCondition& condition) {
      return condition.cells[0] != nullptr && condition.cells[r] != nullptr;
    });
    if (any) continue;
    return bad_input("{}: expected a condition that {} has too, found none{}", of.regimes[r].folder,
                     of.regimes[0].folder, apart_text(of.regimes[0], of.regimes[r]));
  }
  return {};
}

// Every pair's axes are declared.
Status check_varied(const Portability& of, const std::set<std::string>& vary) {
  if (vary.empty()) return {};
  for (const RegimePair& pair : of.pairs) {
    for (const AxisDifference& d : pair.differences) {
      if (vary.contains(d.axis) || vary.contains(perturbation_of(d.axis))) continue;
      const auto shown = [](const std::string& value) {
        return value.empty() ? "nothing" : quoted_excerpt(value);
      };
      return bad_input(
          "{}: identity unlike {}'s: {}{}: expected {}, found {} (--vary {} allows it)",
          of.regimes[pair.b].folder, of.regimes[pair.a].folder, d.axis,
          d.about.empty() ? "" : " of " + d.about, shown(d.base), shown(d.cand), d.axis);
    }
  }
  return {};
}

}  // namespace

std::map<PortabilityVerdict, int64_t> Portability::counts(size_t regime) const {
  std::map<PortabilityVerdict, int64_t> counted;
  for (const ConditionVerdict& verdict : verdicts) {
    if (verdict.b == regime) ++counted[verdict.verdict];
  }
  return counted;
}

std::vector<std::string> Portability::failures() const {
  std::vector<std::string> all;
  for (const JudgedClaim& claim : claims) {
    const bool fails = claim_named ? claim.verdict != ClaimVerdict::kPortable
                                   : claim.verdict == ClaimVerdict::kNotPortable;
    if (!fails) continue;
    all.push_back(fmt::format("{}: {}: {}", claim_verdict_name(claim.verdict),
                              claim_text(claim.claim.words), claim.reason));
  }
  if (claim_named) return all;
  for (const ConditionVerdict& verdict : verdicts) {
    if (!is_flip(verdict.verdict)) continue;
    all.push_back(fmt::format("{}: {}, {} beside {}: {}", portability_verdict_name(verdict.verdict),
                              condition_text(conditions[verdict.condition]),
                              regimes[verdict.b].name, regimes[verdict.a].name, verdict.reason));
  }
  return all;
}

Result<Regime> read_regime(const std::filesystem::path& folder, const RegimeOptions& options) {
  ASSAY_TRY(const Bundle bundle, read_bundle_or_rows(folder));
  return condense(bundle, options);
}

Result<Portability> judge_portability(std::vector<Regime> regimes,
                                      const PortabilityRequest& request) {
  if (regimes.size() < 2) {
    return bad_input("portability: expected two bundles or more, found {}", regimes.size());
  }
  Portability of;
  of.options = request.options;
  of.regimes = std::move(regimes);
  name_apart(of.regimes);
  of.conditions = match_conditions(of.regimes);
  ASSAY_CHECK(check_common(of));
  of.pairs = regime_pairs(of.regimes);
  ASSAY_CHECK(check_varied(of, request.vary));
  ASSAY_TRY(const RegimeCell* base, baseline_cell(of.regimes.front()));
  of.baseline = base->config;
  of.baseline_arm = base->arm;
  of.directions = directions(of.conditions, of.baseline, of.options);
  of.verdicts = judge_conditions(of.regimes, of.conditions, of.directions, of.options);
  of.attributions = attribute(of.regimes, of.pairs, of.conditions, of.directions, of.verdicts,
                              of.baseline, of.options);
  std::vector<ConfiguredClaim> claims;
  of.claim_named = request.claim.has_value();
  if (request.claim) {
    ASSAY_TRY(ConfiguredClaim claim, configure(*request.claim, of.conditions));
    claims.push_back(std::move(claim));
  } else {
    claims = claims_of_arms(of.conditions, of.baseline);
  }
  of.claims = judge_claims(claims, of.regimes, of.pairs, of.conditions, of.options);
  of.matrix = headline_matrix(of.conditions, of.directions, of.baseline);
  return of;
}

}  // namespace assay
