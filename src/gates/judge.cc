// Reads bundles, gate by gate.
#include "gates/judge.h"

#include <algorithm>
#include <atomic>

#include "artifact/each_once.h"
#include "base/add_once.h"
#include "base/process/thread_pool.h"
#include "gates/marked_facts.h"

namespace assay {
namespace {

// One bundle is analysed on all CPUs, several are read one on each: no more of them are in memory
// at once. The error is that of the first bundle that has one.
Result<std::vector<BundleFacts>> read_all_facts(const std::vector<std::string>& names,
                                                const std::optional<SpeedClaim>& claim) {
  std::vector<std::optional<Result<BundleFacts>>> read(names.size());
  std::vector<RunMark> marks(names.size());
  const bool alone = names.size() == 1;
  ThreadPool pool(alone ? available_cpus() : std::min(available_cpus(), names.size()));
  std::atomic<size_t> next{0};
  const auto read_next = [&](size_t) {
    for (size_t i = next++; i < names.size(); i = next++) {
      read[i].emplace(read_facts(names[i], claim, alone ? &pool : nullptr, marks[i]));
    }
  };
  if (alone) {
    read_next(0);
  } else {
    pool.run(read_next);
  }
  std::vector<BundleFacts> facts;
  for (auto& one : read) {
    if (!*one) return std::unexpected(std::move(*one).error());
    facts.push_back(**std::move(one));
  }
  ASSAY_CHECK(check_distinct_runs("gate", marks));
  return facts;
}

ClaimNames names_of(const std::vector<BundleFacts>& bundles) {
  ClaimNames names;
  for (const BundleFacts& bundle : bundles) {
    add_each_once(names.arms, bundle.findings.study.arms);
    for (const Stratum& stratum : bundle.findings.strata) {
      add_once(names.models, stratum.model);
      add_once(names.scenarios, stratum.scenario);
    }
  }
  return names;
}

std::vector<JudgedGate> judge_four(const BundleFacts& facts, const GateScope& scope) {
  return {judge_phases(facts, scope), judge_environment(facts, scope),
          judge_artifacts(facts, scope), judge_surfacing(facts, scope)};
}

// The part of the scope that one of its claims is about.
GateScope part_of(const GateScope& scope, const SpeedClaim& claim,
                  const std::vector<std::vector<const GatedCell*>>& by_stratum,
                  const std::vector<size_t>& strata) {
  GateScope part;
  part.claims = {claim};
  part.silent = 0;
  if (scope.claims.size() == 1) {
    part.cells = scope.cells;
    return part;
  }
  for (const size_t stratum : strata) {
    part.cells.insert(part.cells.end(), by_stratum[stratum].begin(), by_stratum[stratum].end());
  }
  return part;
}

JudgedBundle judge_bundle(const BundleFacts& facts, const std::optional<SpeedClaim>& claim) {
  const GateScope scope = scope_of(facts, claim);
  JudgedBundle judged{.name = facts.name,
                      .study = facts.findings.study,
                      .options = facts.findings.options,
                      .findings_from_file = facts.findings_from_file,
                      .why_anew = facts.why_anew,
                      .gates = judge_four(facts, scope),
                      .claims = {},
                      .silent = scope.silent};
  const StratumFindings findings(claim ? facts.findings_for(*claim) : facts.findings);
  std::vector<std::vector<const GatedCell*>> by_stratum(facts.findings.strata.size());
  for (const GatedCell* cell : scope.cells) by_stratum[cell->stratum].push_back(cell);
  for (const SpeedClaim& one : scope.claims) {
    GatedClaim answered{.claim = one, .answer = answer_claim(one, findings)};
    const GateScope part = part_of(scope, one, by_stratum, answered.answer.strata);
    const std::vector<JudgedGate> gates = judge_four(facts, part);
    for (size_t i = 0; i < gates.size(); ++i) answered.gates[i] = gates[i].verdict();
    judged.claims.push_back(std::move(answered));
  }
  return judged;
}

}  // namespace

GateVerdict Judgement::gate_verdict(GateKind kind) const {
  if (kind == GateKind::kRegimes) return regimes.gate.verdict();
  std::vector<GateVerdict> verdicts;
  for (const JudgedBundle& bundle : bundles) {
    for (const JudgedGate& gate : bundle.gates) {
      if (gate.kind == kind) verdicts.push_back(gate.verdict());
    }
  }
  return worst(verdicts);
}

std::optional<GateVerdict> Judgement::claim_verdict() const {
  if (!claim) return std::nullopt;
  std::vector<GateVerdict> verdicts;
  for (const JudgedBundle& bundle : bundles) {
    for (const GatedClaim& one : bundle.claims) verdicts.push_back(one.answer.verdict);
  }
  return worst(verdicts);
}

GateVerdict Judgement::verdict() const {
  std::vector<GateVerdict> verdicts;
  for (const GateKind kind : kGateKinds) verdicts.push_back(gate_verdict(kind));
  if (const auto of_claim = claim_verdict()) verdicts.push_back(*of_claim);
  return worst(verdicts);
}

Judgement judge_facts(const std::vector<BundleFacts>& bundles,
                      const std::optional<SpeedClaim>& claim, const std::string& axis) {
  Judgement judgement{.claim = claim, .axis = axis, .bundles = {}, .regimes = {}};
  for (const BundleFacts& facts : bundles) {
    judgement.bundles.push_back(judge_bundle(facts, claim));
  }
  judgement.regimes = judge_regimes(bundles, claim, axis);
  return judgement;
}

Result<Judgement> judge_bundles(const JudgeRequest& request) {
  ASSAY_CHECK(check_each_once("gate", request.bundles));
  std::optional<SpeedClaim> claim;
  if (request.claim) {
    ASSAY_TRY(claim, parse_claim(*request.claim));
  }
  ASSAY_TRY(const std::vector<BundleFacts> bundles, read_all_facts(request.bundles, claim));
  if (claim) ASSAY_CHECK(check_claim_names(*claim, names_of(bundles)));
  std::string axis;
  if (!request.axis.empty()) {
    ASSAY_TRY(axis, parse_axis(request.axis, bundles.front().bundle, bundles.back().bundle));
  }
  return judge_facts(bundles, claim, axis);
}

}  // namespace assay
