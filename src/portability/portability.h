// Portability of a bundle's results: verdicts by condition, the axes behind changes, claims with
// their robustness, and the headline matrix, over several bundles.
// docs/judgements.md has the conditions of each verdict.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/records/json.h"
#include "portability/attribution.h"
#include "portability/claim.h"
#include "portability/matrix.h"

namespace assay {

inline constexpr int kPortabilitySchemaVersion = 3;

struct PortabilityRequest {
  PortabilityOptions options;
  RegimeOptions regimes;
  // Judged alone, and passes check_portable(); absent: every arm's against the baseline.
  std::optional<SpeedClaim> claim;
  std::set<std::string> vary;  // axes on which bundles may differ; empty: on any
};

struct Portability {
  PortabilityOptions options;
  std::vector<Regime> regimes;  // in the order given; the others are compared with the first
  std::vector<RegimePair> pairs;
  std::vector<PortedCondition> conditions;  // point into regimes
  ArmConfig baseline;
  std::string baseline_arm;                           // in the first regime
  std::vector<std::vector<ArmDirection>> directions;  // by condition and regime
  std::vector<ConditionVerdict> verdicts;
  std::vector<Attribution> attributions;  // of the verdicts
  std::vector<JudgedClaim> claims;
  bool claim_named = false;
  std::vector<HeadlineCell> matrix;

  // Number of times that each verdict is given beside that regime.
  std::map<PortabilityVerdict, int64_t> counts(size_t regime) const;
  // Reasons why the command fails, one sentence each: a named claim that isn't portable, or isn't
  // decided; without a named claim flips, and claims that aren't portable.
  std::vector<std::string> failures() const;
};

// Reads a bundle, or kept rows.
Result<Regime> read_regime(const std::filesystem::path& folder, const RegimeOptions& options);

// At least two regimes, whose order stays. bad_input: no condition in common with the first, a
// difference on an axis that `vary` doesn't name, a claim about arms that aren't there.
Result<Portability> judge_portability(std::vector<Regime> regimes,
                                      const PortabilityRequest& request);

Json portability_to_json(const Portability& portability);

}  // namespace assay
