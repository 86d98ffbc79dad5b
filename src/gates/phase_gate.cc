// Gate 1: every claim names its phase, and no figure mixes phases.
#include <algorithm>

#include "base/add_once.h"
#include "base/text/text.h"
#include "gates/gates.h"

namespace assay {
namespace {

std::string silent_text(const GateScope& scope) {
  if (scope.silent == 0) return "";
  return fmt::format(" {} {} no arm.", counted(scope.silent, "further decision"),
                     scope.silent == 1 ? "names" : "name");
}

GateCheck claims_name_phases(const GateScope& scope) {
  GateCheck check{.name = "claims", .looked_at = "analysis/findings.json: decisions"};
  if (scope.claims.empty()) {
    check.found = "There is no claim to judge: no decision names an arm.";
    return check;
  }
  Deciders without;
  std::vector<std::string> phases;
  for (const SpeedClaim& claim : scope.claims) {
    if (!claim.phase) {
      without.add("claim: " + claim_text(claim));
      continue;
    }
    const std::string name(phase_name(*claim.phase));
    add_once(phases, name);
  }
  const bool one = scope.claims.size() == 1;
  return std::move(without).decide(
      std::move(check), GateVerdict::kFail,
      fmt::format("The claim names no phase (one of {}).", join(phase_names(), ", ")),
      fmt::format("{} {} phase: {}.{}", counted(std::ssize(scope.claims), "claim"),
                  one ? "names its" : "name their", join(phases, ", "), silent_text(scope)));
}

GateCheck rows_are_of_one_phase(const GateScope& scope) {
  GateCheck check{.name = "rows",
                  .looked_at = "PHASE/metrics.csv: phase, new_tokens, ttft_ms of every row"};
  Deciders mixed;
  int64_t rows = 0;
  int64_t mixing = 0;
  std::string first;
  for (const GatedCell* cell : scope.cells) {
    rows += cell->rows;
    if (cell->mixing_rows.empty()) continue;
    mixing += std::ssize(cell->mixing_rows);
    if (first.empty()) first = cell->mixing;
    mixed.add(rows_text(*cell, cell->mixing_rows));
  }
  if (rows == 0) {
    check.found = "The bundle has no row of the judged claims.";
    return check;
  }
  return std::move(mixed).decide(
      std::move(check), GateVerdict::kFail,
      fmt::format("The times of {} of {} mix phases: {}.", mixing, counted(rows, "row"), first),
      fmt::format("Each of {} has the times of one phase.", counted(rows, "row")));
}

// True if the arm has rows of that phase under the same condition.
bool is_measured_apart(const BundleFacts& facts, const GatedCell& whole, Phase phase) {
  const Stratum& of = facts.findings.strata[whole.stratum];
  return std::ranges::any_of(facts.cells, [&](const GatedCell& cell) {
    const Stratum& at = facts.findings.strata[cell.stratum];
    return at.phase == phase && cell.arm == whole.arm && cell.timed > 0 && at.model == of.model &&
           at.scenario == of.scenario && at.batch == of.batch &&
           (phase == Phase::kPrefill || at.new_tokens == of.new_tokens);
  });
}

// Checks figures of e2e_kv: both phases together are no substitute for either.
void check_parts(const BundleFacts& facts, const GateScope& scope, JudgedGate& gate) {
  Deciders lacking;
  int64_t cells = 0;
  for (const GatedCell* cell : scope.cells) {
    if (cell->phase != Phase::kE2eKv || cell->timed == 0) continue;
    ++cells;
    for (const Phase phase : {Phase::kPrefill, Phase::kKvDecode}) {
      if (is_measured_apart(facts, *cell, phase)) continue;
      lacking.add(fmt::format("e2e_kv/metrics.csv: cell {}: {} has no rows in {} there", cell->id,
                              cell->arm, phase_name(phase)));
    }
  }
  if (cells == 0) return;
  gate.checks.push_back(std::move(lacking).decide(
      {.name = "parts", .looked_at = "strata of prefill and kv_decode beside those of e2e_kv"},
      GateVerdict::kFail,
      "Figures of e2e_kv mix prefill and decode, and the bundle lacks one of the two by itself.",
      fmt::format("{} of e2e_kv {} prefill and kv_decode by themselves beside them.",
                  counted(cells, "cell"), cells == 1 ? "has" : "have")));
}

}  // namespace

JudgedGate judge_phases(const BundleFacts& facts, const GateScope& scope) {
  JudgedGate gate{.kind = GateKind::kPhaseSeparation, .looked_at = {}, .checks = {}};
  gate.looked_at = fmt::format("{}, {}", counted(std::ssize(scope.claims), "claim"),
                               counted(std::ssize(scope.cells), "cell"));
  gate.checks.push_back(claims_name_phases(scope));
  gate.checks.push_back(rows_are_of_one_phase(scope));
  check_parts(facts, scope, gate);
  return gate;
}

}  // namespace assay
