// Claims as people name them.
#include <algorithm>
#include <set>

#include "base/text.h"
#include "portability/claim.h"

namespace assay {
namespace {

constexpr std::string_view kForm = "ARM faster|slower than ARM in PHASE";

std::unexpected<Error> not_a_claim(const std::string& text) {
  return bad_input("--claim: expected {}, found {}", kForm, quoted_excerpt(text));
}

}  // namespace

std::string claim_text(const ArmClaim& claim) {
  return fmt::format("{} {} than {} in {}", claim.arm, claim.faster ? "faster" : "slower",
                     claim.than, phase_name(claim.phase));
}

Result<ArmClaim> parse_arm_claim(const std::string& text) {
  ArmClaim claim;
  size_t middle = std::string::npos;
  size_t length = 0;
  for (const std::string_view word : {" faster than ", " slower than "}) {
    const size_t at = text.find(word);
    if (at == std::string::npos || at >= middle) continue;
    middle = at;
    length = word.size();
    claim.faster = word.starts_with(" faster");
  }
  const size_t in = text.rfind(" in ");
  if (middle == std::string::npos || in == std::string::npos || in < middle + length) {
    return not_a_claim(text);
  }
  claim.arm = text.substr(0, middle);
  claim.than = text.substr(middle + length, in - middle - length);
  const std::string phase = text.substr(in + 4);
  const auto known = std::ranges::find(kPhases, phase, phase_name);
  if (claim.arm.empty() || claim.than.empty()) return not_a_claim(text);
  if (known == std::end(kPhases)) {
    std::vector<std::string> names;
    for (const Phase each : kPhases) names.emplace_back(phase_name(each));
    return bad_input("--claim: expected one of {} behind \"in\", found {}{}", join(names, ", "),
                     quoted_excerpt(phase), nearest_hint(phase, names));
  }
  claim.phase = *known;
  return claim;
}

Result<ConfiguredClaim> configure(const ArmClaim& claim,
                                  std::span<const PortedCondition> conditions) {
  ConfiguredClaim configured{.words = claim, .arm = {}, .than = {}};
  std::vector<std::string> arms;
  for (const auto& [name, config] :
       {std::pair{&claim.arm, &configured.arm}, {&claim.than, &configured.than}}) {
    bool found = false;
    for (const PortedCondition& condition : conditions) {
      const RegimeCell* cell = condition.cells.front();
      if (cell == nullptr || condition.stratum.phase != claim.phase) continue;
      if (std::ranges::find(arms, cell->arm) == arms.end()) arms.push_back(cell->arm);
      if (cell->arm != *name || found) continue;
      *config = condition.config;
      found = true;
    }
    if (!found) {
      return bad_input(
          "--claim: expected an arm that the first bundle measured in {} ({}), found "
          "{}{}",
          phase_name(claim.phase), arms.empty() ? "it has none" : join(arms, ", "),
          quoted_excerpt(*name), nearest_hint(*name, arms));
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
    const ArmClaim words{cell->arm, beside->cells.front()->arm, condition.stratum.phase, true};
    claims.push_back({words, condition.config, baseline, true});
  }
  return claims;
}

}  // namespace assay
