// A claim of one arm against another in a phase: whether it holds from regime to regime, and how
// much of it is left.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/claims/claim.h"
#include "portability/attribution.h"
#include "portability/robustness.h"

namespace assay {

// bad_input: a claim that can't be judged from regime to regime, as it names no phase or isn't of
// one arm that is faster or slower than another.
Status check_portable(const SpeedClaim& claim);

// A claim that passes check_portable(), by its arms' configurations.
struct ConfiguredClaim {
  SpeedClaim words;
  ArmConfig arm;
  ArmConfig than;

  bool faster() const { return words.relation == ClaimRelation::kFaster; }
  bool as_measured =
      false;  // nobody said whether faster or slower: as the first regime's rows have it
};
// Configures a claim by the arms of the first regime. bad_input: the errors of check_portable();
// the regime has no such arm, not in that phase, or not where the claim is narrowed to.
Result<ConfiguredClaim> configure(const SpeedClaim& claim,
                                  std::span<const PortedCondition> conditions);
// Every arm of the first regime that isn't the baseline, in each phase, against the baseline: as
// the rows there have it, faster or slower.
std::vector<ConfiguredClaim> claims_of_arms(std::span<const PortedCondition> conditions,
                                            const ArmConfig& baseline);

// State of a claim in one regime.
enum class ClaimState {
  kHolds,      // significant, and the way that the claim says
  kTurned,     // significant, and the other way
  kLost,       // one of its arms lost rows
  kGone,       // not measured, or nothing can be said: `reason`
  kUndecided,  // not significant
};
std::string_view claim_state_name(ClaimState state);

// Its ratio is the geometric mean over the strata, its family all claims and regimes.
struct ClaimInRegime : JudgedRatio {
  size_t regime = 0;
  ClaimState state = ClaimState::kUndecided;
  std::string reason;
  std::vector<std::string> axes;      // on which it differs from the first
  std::vector<std::string> unstated;  // on which it may, as one of the two doesn't state them
};

enum class ClaimVerdict { kPortable, kNotPortable, kNotDecided };
std::string_view claim_verdict_name(ClaimVerdict verdict);

struct JudgedClaim {
  ConfiguredClaim claim;
  std::vector<std::string> strata;  // on which it was compared: common to all that survive
  std::vector<ClaimInRegime> regimes;
  // Indexes by axis (stack, code, device, cache, process, others that bundles differ on), then
  // "all": every regime at once.
  std::vector<RobustnessIndex> indexes;
  ClaimVerdict verdict = ClaimVerdict::kNotDecided;
  std::string reason;
};

// portable: it holds in the first regime and in every other one, of which one at least differs from
// one of the others on one axis, or on one kind of axis, alone. not_portable: it holds in the first
// and somewhere is turned round or lost rows. Else not decided, and `reason` says why.
std::vector<JudgedClaim> judge_claims(std::span<const ConfiguredClaim> claims,
                                      std::span<const Regime> regimes,
                                      std::span<const RegimePair> pairs,
                                      std::span<const PortedCondition> conditions,
                                      const PortabilityOptions& options);

}  // namespace assay
