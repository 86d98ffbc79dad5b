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
  std::vector<std::string> axes;  // on which they differ, without those that follow from another
  std::vector<AxisDifference> differences;  // all of them
  std::string axis;                         // the one axis; empty: the pair shows nothing
  std::string why_not;                      // the pair shows nothing; else empty
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

// Compares the bundles' axes. A device's host parts (caches, sockets, memory) and the variable that
// chooses the interpreter of a framework or code generator are no axes of their own. Weights are no
// regime: a pair that differs in a model shows nothing. Neither does a pair without a stratum in
// common, nor one in which an axis isn't stated (UnstatedAxis), since that axis may differ as
// well.
AxisPair regime_pair(const std::vector<BundleFacts>& bundles, size_t first, size_t second,
                     const std::string& axis);

// `axis`: the declared one; empty: whichever axis is the only one that differs. A claim passes if
// it holds in both bundles of such a pair, also on the strata that both measured alone. It fails if
// the findings contradict it in a bundle of any such pair. A pair in which only other arms differ
// shows nothing about the claim. Without such a pair nothing is decided.
JudgedRegimes judge_regimes(const std::vector<BundleFacts>& bundles,
                            const std::optional<SpeedClaim>& claim, const std::string& axis);

}  // namespace assay
