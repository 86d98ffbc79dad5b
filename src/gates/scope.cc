// The cells and claims that are judged, and the axes of their arms that the identity states.
#include <algorithm>

#include "base/records/backend_traits.h"
#include "base/records/lenient_json.h"
#include "gates/claim_answer.h"
#include "gates/gates.h"

namespace assay {

GateScope scope_of(const BundleFacts& facts, const std::optional<SpeedClaim>& claim) {
  GateScope scope;
  if (claim) {
    scope.claims = {*claim};
  } else {
    scope.claims = claims_of_decisions(facts.findings);
    scope.silent = std::ranges::count_if(facts.findings.decisions, [](const Decision& decision) {
      return decision.kind != Decision::Kind::kBest && decision.kind != Decision::Kind::kAhead &&
             decision.kind != Decision::Kind::kNoDifference;
    });
  }
  for (const GatedCell& cell : facts.cells) {
    if (claim) {
      if (!claim_covers(*claim, facts.findings.strata[cell.stratum])) continue;
      const bool all = claim->relation == ClaimRelation::kFastest;
      if (!all && cell.arm != claim->arm && cell.arm != claim->other) continue;
    }
    scope.cells.push_back(&cell);
  }
  return scope;
}

std::string stated_axis(const BundleFacts& facts, const std::string& arm,
                        const std::string& backend, std::string_view axis) {
  const Json& identity = member(facts.bundle.manifest, "identity");
  if (std::string own = text_member(member(member(identity, "arms"), arm), axis); !own.empty()) {
    return own;
  }
  const WorkerKind worker = backend_traits(backend).worker;
  const bool of_program = worker == WorkerKind::kAssay || axis == "device" ||
                          (axis == "code_sha" && worker == WorkerKind::kInterpreter);
  return of_program ? text_member(identity, axis) : "";
}

std::vector<GatedArm> arms_of(const BundleFacts& facts, const GateScope& scope) {
  std::vector<GatedArm> arms;
  for (const std::string& name : facts.findings.study.arms) arms.push_back({name, "", {}});
  for (const GatedCell* cell : scope.cells) {
    auto at = std::ranges::find(arms, cell->arm, &GatedArm::name);
    if (at == arms.end()) continue;
    at->backend = cell->backend;
    at->cells.push_back(cell);
  }
  std::erase_if(arms, [](const GatedArm& arm) { return arm.cells.empty(); });
  return arms;
}

}  // namespace assay
