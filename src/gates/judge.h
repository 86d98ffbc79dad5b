// The five gates over one bundle or several, of one claim or of every decision.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "gates/gates.h"
#include "gates/regime_gate.h"

namespace assay {

inline constexpr int kJudgementSchemaVersion = 1;

// A claim in one bundle: whether its findings bear it out, and what the first four gates say of its
// own cells.
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

  // Of a gate over all bundles.
  GateVerdict gate_verdict(GateKind kind) const;
  // Of the named claim over all bundles; absent: none is named.
  std::optional<GateVerdict> claim_verdict() const;
  // Of all gates and the named claim.
  GateVerdict verdict() const;
};

struct JudgeRequest {
  std::vector<std::string> bundles;  // folders
  std::optional<std::string> claim;  // as the user wrote it
  std::string axis;                  // --vary; empty: none
};

// Reads the bundles in parallel and judges them. bad_input: what read_facts() refuses, a bundle
// that is named twice, a claim that doesn't parse or names what no bundle has, no axis of that
// name.
Result<Judgement> judge_bundles(const JudgeRequest& request);

// Of facts in memory.
Judgement judge_facts(const std::vector<BundleFacts>& bundles,
                      const std::optional<SpeedClaim>& claim, const std::string& axis);

Json judgement_to_json(const Judgement& judgement);

}  // namespace assay
