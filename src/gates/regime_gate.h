// Gate 5: a claim is reproduced where it holds in two regimes that differ on one axis.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/compare/identity_axes.h"
#include "gates/claim_answer.h"
#include "gates/facts.h"

namespace assay {

// Two of the bundles.
struct AxisPair {
  size_t first = 0;
  size_t second = 0;
  std::vector<std::string> axes;  // on which they differ, what follows from another left out
  std::vector<AxisDifference> differences;  // all of them
  std::string axis;                         // the one axis; empty: the pair shows nothing
  std::string why_not;                      // then
};

// A claim over all bundles.
struct ReproducedClaim {
  SpeedClaim claim;
  GateVerdict verdict = GateVerdict::kNotDecided;
  std::string because;
  std::vector<GateVerdict> holds;  // in each bundle
};

struct JudgedRegimes {
  JudgedGate gate;
  std::vector<AxisPair> pairs;
  std::vector<ReproducedClaim> claims;
};

// Axes on which the bundles differ. Of a device the parts of its host (caches, sockets, memory),
// and of a framework or code generator the variable that chooses its interpreter, are no axes of
// their own. Weights are no regime: a pair that differs in a model shows nothing. Neither does one
// without a stratum in common, nor one of which an axis isn't stated (UnstatedAxis), since it may
// differ as well.
AxisPair regime_pair(const std::vector<BundleFacts>& bundles, size_t first, size_t second,
                     const std::string& axis);

// `axis`: the one that was declared; empty: whichever axis is the only one that differs. A claim
// passes if it holds in both bundles of such a pair, also on the strata that both measured alone,
// and in no bundle of any such pair do the findings say otherwise; then it fails. A pair of which
// only other arms differ shows nothing of the claim. No such pair: nothing is decided.
JudgedRegimes judge_regimes(const std::vector<BundleFacts>& bundles,
                            const std::optional<SpeedClaim>& claim, const std::string& axis);

}  // namespace assay
