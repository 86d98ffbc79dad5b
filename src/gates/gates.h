// The four gates that one bundle passes or doesn't, a file each. The fifth, of several bundles, is
// in regime_gate.h. docs/judgements.md lists the demands of each and when it isn't decided.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/claims/claim.h"
#include "gates/facts.h"
#include "gates/gate.h"

namespace assay {

// The part of a bundle that is judged.
struct GateScope {
  std::vector<SpeedClaim> claims;
  int64_t silent = 0;  // decisions that name no arm and so claim nothing
  std::vector<const GatedCell*> cells;
};

// For a named claim: its arms (every arm for "fastest") on the strata that it covers. Without one:
// every decision and every cell.
GateScope scope_of(const BundleFacts& facts, const std::optional<SpeedClaim>& claim);

// phase_gate.cc. Checks: claims, rows, and of e2e_kv parts.
JudgedGate judge_phases(const BundleFacts& facts, const GateScope& scope);
// environment_gate.cc. Checks: identity, commit, worker, agreement, toolchain, sittings.
JudgedGate judge_environment(const BundleFacts& facts, const GateScope& scope);
// artifact_gate.cc. Checks: files, rows, compiled_cells.
JudgedGate judge_artifacts(const BundleFacts& facts, const GateScope& scope);
// surfacing_gate.cc. Checks: cache, mode, dynamic, quantisation, code_generator.
JudgedGate judge_surfacing(const BundleFacts& facts, const GateScope& scope);

// The axis of an arm's identity: its own, or else the program's where that is the arm's too (the
// device and the commit of any arm but a command's; all of a native arm's). Empty: nothing states
// it.
std::string stated_axis(const BundleFacts& facts, const std::string& arm,
                        const std::string& backend, std::string_view axis);

// Arms of these cells, each with its backend, in the study's order.
struct GatedArm {
  std::string name;
  std::string backend;
  std::vector<const GatedCell*> cells;
};
std::vector<GatedArm> arms_of(const BundleFacts& facts, const GateScope& scope);

}  // namespace assay
