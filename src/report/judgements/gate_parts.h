// Tables and checks that the screen of gates and their Markdown share.
#pragma once

#include <string>
#include <vector>

#include "base/tables/table.h"
#include "gates/judge.h"

namespace assay {

// "pass", "FAIL", "not decided".
std::string gate_verdict_text(GateVerdict verdict);

// "FAIL: 1 of 5 gates fails, 1 is not decided".
std::string gates_headline(const Judgement& judgement);

// A sentence: by which margin and alpha the findings decide.
std::string gate_options_text(const Judgement& judgement);

// A check as all bundles have it.
struct SharedCheck {
  GateKind kind = GateKind::kPhaseSeparation;
  const GateCheck* check = nullptr;      // the first bundle's of this verdict
  const JudgedBundle* bundle = nullptr;  // that one; null: of all bundles together
  int64_t bundles = 0;                   // of how many it has this verdict
};
// The checks by verdict, the worst first, then in the gates' order: each check once for each
// verdict that it has somewhere.
std::vector<SharedCheck> shared_checks(const Judgement& judgement);

// gate, verdict, looked_at: one row a gate.
Table gate_table(const Judgement& judgement);
// bundle, and the verdict of each of the first four gates; of a named claim, whether it holds.
Table bundle_table(const Judgement& judgement);

}  // namespace assay
