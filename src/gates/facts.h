// The parts of a bundle that gates judge: its cells, its findings and verification's problems. The
// rows needn't be kept beside them.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analysis/claims/claim.h"
#include "analysis/findings/execution.h"
#include "artifact/bundle.h"
#include "gates/bundle_findings.h"
#include "gates/gate.h"

namespace assay {

// One arm on one stratum.
struct GatedCell {
  std::string id;
  size_t stratum = 0;  // of the findings' strata
  Phase phase = Phase::kPrefill;
  std::string arm;
  std::string backend;
  int64_t rows = 0;
  int64_t timed = 0;  // rows with a figure; a cell without one has outcomes alone
  // Values that the rows state; "" is among them if some row states none.
  std::set<std::string> cache;
  std::set<std::string> compile_mode;
  std::set<std::string> dynamic;
  std::set<std::string> quantization;
  bool wants_compiler = false;
  Execution execution = Execution::kEager;
  std::vector<int64_t> eager_rows;   // repetitions of a compiled mode that ran eager
  std::vector<int64_t> mixing_rows;  // repetitions whose time is of two phases
  std::string mixing;                // why, for the first of them
  // From the cell's evidence.json:
  bool has_evidence = false;
  std::string worker;                      // name and version; empty: none is named
  std::string worker_dtype;                // in use
  bool reported = false;                   // a worker gave evidence of itself
  std::vector<int64_t> unknown_processes;  // that rows name and the evidence doesn't
  Json toolchain;                          // as the worker reported it; null: it didn't
  Json actual;                             // as the worker reported it; null: it didn't
  std::string reason;                      // the first of the worker's verdict
};

struct BundleFacts {
  std::string name;  // as the user gave it
  Findings findings;
  bool findings_from_file = false;
  std::string why_anew;              // of findings that aren't from the file
  std::optional<Findings> of_claim;  // with the claim's other arm as the baseline, where needed
  std::vector<GatedCell> cells;      // by stratum, then arm
  std::vector<VerifyProblem> problems;
  bool rows_alone = false;
  // Only the first row of each cell, and only members that an axis of the identity is read from.
  Bundle bundle;

  // The findings that contrast the claim's arms.
  const Findings& findings_for(const SpeedClaim& claim) const;
};

// Reads, verifies and analyses the bundle (the analysis over `pool`, which may be null). `claim`:
// the claim to decide, if one is named. A folder of rows alone (read_kept_rows()) is read too.
// Damage that keeps rows from being read: bad_input; any other is among `problems`.
Result<BundleFacts> read_facts(const std::string& name, const std::optional<SpeedClaim>& claim,
                               ThreadPool* pool);

// Facts of a bundle in memory, whose rows `samples` groups. The errors of analyze().
Result<BundleFacts> facts_of(Bundle bundle, const Samples& samples, BundleFindings findings,
                             std::vector<VerifyProblem> problems,
                             const std::optional<SpeedClaim>& claim, ThreadPool* pool);

// "kv_decode/metrics.csv: cell c001, repetitions 3, 4 and 5 more"
std::string rows_text(const GatedCell& cell, const std::vector<int64_t>& repetitions);
// "cells/c001/evidence.json: MEMBER"
std::string evidence_member(const GatedCell& cell, std::string_view member);

}  // namespace assay
