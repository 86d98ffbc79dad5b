// Gate 3: raw rows, evidence and configuration are in the bundle, and their hashes match.
#include <algorithm>

#include "base/text/text.h"
#include "gates/gates.h"

namespace assay {
namespace {

GateCheck files_are_whole(const BundleFacts& facts) {
  GateCheck check{.name = "files",
                  .looked_at = "manifest.json: files, commits.jsonl, every row (assay verify)"};
  if (facts.rows_alone) {
    check.verdict = GateVerdict::kFail;
    check.found =
        "Only rows are kept: no manifest, no hash and no file of evidence vouches for them.";
    check.decided_by = {std::string(kOriginName)};
    return check;
  }
  Deciders wrong("problem");
  for (const VerifyProblem& problem : facts.problems) wrong.add(problem.object, problem.problem);
  const std::string first = facts.problems.empty() ? "" : facts.problems.front().object;
  return std::move(wrong).decide(
      std::move(check), GateVerdict::kFail,
      fmt::format("Verification finds {}, the first in {}.",
                  counted(std::ssize(facts.problems), "problem"),
                  first.empty() ? "the bundle" : first),
      "Every file matches its hash in the manifest, and every row fits the schema.");
}

GateCheck rows_are_there(const GateScope& scope) {
  GateCheck check{.name = "rows", .looked_at = "PHASE/metrics.csv: status, latency_ms"};
  if (scope.cells.empty()) {
    check.found = "The bundle has no row of the judged claims.";
    return check;
  }
  int64_t rows = 0;
  int64_t timed = 0;
  Deciders without;
  for (const GatedCell* cell : scope.cells) {
    rows += cell->rows;
    timed += cell->timed;
    if (cell->timed == 0) {
      without.add(fmt::format("{}/metrics.csv: cell {}", phase_name(cell->phase), cell->id));
    }
  }
  if (timed == 0) {
    return std::move(without).decide(std::move(check), GateVerdict::kFail,
                                     fmt::format("None of {} has a time.", counted(rows, "row")),
                                     "");
  }
  check.verdict = GateVerdict::kPass;
  check.found =
      fmt::format("{} of {} {} a time", timed, counted(rows, "row"), timed == 1 ? "has" : "have");
  if (without.any()) {
    check.found +=
        fmt::format("; {} lost every row, and nothing is claimed of {}",
                    counted(without.count(), "cell"), without.count() == 1 ? "it" : "them");
  }
  check.found += ".";
  return check;
}

std::string execution_text(const GatedCell& cell) {
  const std::string word(execution_name(cell.execution));
  return cell.reason.empty() ? word : fmt::format("{} ({})", word, cell.reason);
}

// A cell without a figure claims no compiler.
GateCheck compiled_cells_have_evidence(const GateScope& scope) {
  Deciders unproven;
  int64_t cells = 0;
  std::string first;
  for (const GatedCell* cell : scope.cells) {
    if (!cell->wants_compiler || cell->timed == 0) continue;
    ++cells;
    if (cell->execution == Execution::kCompiled) continue;
    if (first.empty()) first = fmt::format("{}: {}", cell->id, execution_text(*cell));
    if (!cell->eager_rows.empty()) {
      unproven.add(rows_text(*cell, cell->eager_rows) + ": fallbacks_delta");
    } else {
      unproven.add(evidence_member(*cell, cell->has_evidence ? "compiler_real" : "missing"));
    }
  }
  const int64_t short_of = unproven.count();
  return std::move(unproven).decide(
      {.name = "compiled_cells",
       .looked_at = "cells/CELL/evidence.json: compiler_real; fallbacks_delta of every row"},
      GateVerdict::kFail,
      fmt::format("{} of {} that asked for a compiler {} no proof of having run compiled; the "
                  "first is {}.",
                  short_of, counted(cells, "cell"), short_of == 1 ? "has" : "have", first),
      cells == 0 ? "No cell asks for a compiler."
                 : fmt::format("{} that asked for a compiler {} proof that it ran compiled.",
                               counted(cells, "cell"), cells == 1 ? "has" : "have"));
}

}  // namespace

JudgedGate judge_artifacts(const BundleFacts& facts, const GateScope& scope) {
  JudgedGate gate{.kind = GateKind::kArtifacts, .looked_at = {}, .checks = {}};
  gate.looked_at = fmt::format("{}, {}", facts.rows_alone ? "rows alone" : "every file",
                               counted(std::ssize(scope.cells), "cell"));
  gate.checks = {files_are_whole(facts), rows_are_there(scope),
                 compiled_cells_have_evidence(scope)};
  return gate;
}

}  // namespace assay
