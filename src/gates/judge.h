// The five gates over one bundle or several, of one claim or of every decision.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/records/json.h"
#include "gates/gates.h"
#include "gates/regime_gate.h"

namespace assay {

inline constexpr int kJudgementSchemaVersion = 1;

// A claim in one bundle: the answer of its findings, and the first four gates' verdicts on the
// claim's own cells.
struct GatedClaim {
  SpeedClaim claim;
  ClaimAnswer answer;
  std::array<GateVerdict, 4> gates{};
};

struct JudgedBundle {
  std::string name;
  StudySummary study;
  AnalysisOptions options;  // of its findings
  bool findings_from_file = false;
  std::string why_anew;
  std::vector<JudgedGate> gates;  // the first four
  std::vector<GatedClaim> claims;
  int64_t silent = 0;  // decisions that claim nothing
};

struct Judgement {
  std::optional<SpeedClaim> claim;  // absent: every decision is judged
  std::string axis;                 // that was declared; empty: none
  std::vector<JudgedBundle> bundles;
  JudgedRegimes regimes;

  // The worst verdict of one gate over all bundles.
  GateVerdict gate_verdict(GateKind kind) const;
  // The worst answer to the named claim over all bundles; absent: none is named.
  std::optional<GateVerdict> claim_verdict() const;
  // The worst verdict of all gates and the named claim.
  GateVerdict verdict() const;
};

struct JudgeRequest {
  std::vector<std::string> bundles;  // folders
  std::optional<std::string> claim;  // as the user wrote it
  std::string axis;                  // --vary; empty: none
};

// Reads the bundles in parallel and judges them. bad_input: read_facts() refuses one, a bundle is
// named twice, the claim doesn't parse or names an arm or stratum of no bundle, there is no axis of
// that name.
Result<Judgement> judge_bundles(const JudgeRequest& request);

// Judges facts in memory.
Judgement judge_facts(const std::vector<BundleFacts>& bundles,
                      const std::optional<SpeedClaim>& claim, const std::string& axis);

Json judgement_to_json(const Judgement& judgement);

}  // namespace assay
