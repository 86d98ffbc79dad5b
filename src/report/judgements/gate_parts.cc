// Tables and words of gates.
#include "report/judgements/gate_parts.h"

#include <algorithm>
#include <map>

#include "base/records/enum_words.h"
#include "base/text/text.h"

namespace assay {
namespace {

std::string gate_label(GateKind kind) {
  return fmt::format("{} {}", static_cast<int>(kind) + 1, gate_title(kind));
}

const JudgedGate& first_of(const Judgement& judgement, GateKind kind) {
  if (kind == GateKind::kRegimes) return judgement.regimes.gate;
  return judgement.bundles.front().gates[static_cast<size_t>(kind)];
}

}  // namespace

std::string gate_verdict_text(GateVerdict verdict) {
  return std::string(word_of(verdict, {"pass", "not decided", "FAIL"}));
}

std::string gates_headline(const Judgement& judgement) {
  std::map<GateVerdict, int> counts;
  for (const GateKind kind : kGateKinds) ++counts[judgement.gate_verdict(kind)];
  const int failed = counts[GateVerdict::kFail];
  const int open = counts[GateVerdict::kNotDecided];
  std::vector<std::string> parts;
  if (failed > 0) {
    parts.push_back(fmt::format("{} of 5 gates {}", failed, failed == 1 ? "fails" : "fail"));
  }
  if (open > 0) {
    parts.push_back(fmt::format("{}{} {} not decided", open, failed > 0 ? "" : " of 5 gates",
                                open == 1 ? "is" : "are"));
  }
  const auto holds = judgement.claim_verdict();
  if (holds == GateVerdict::kFail) parts.emplace_back("the claim doesn't hold");
  if (holds == GateVerdict::kNotDecided) parts.emplace_back("the claim is open");
  if (parts.empty()) parts.emplace_back("all five gates pass");
  return fmt::format("{}: {}", gate_verdict_text(judgement.verdict()), join(parts, ", "));
}

std::string gate_options_text(const Judgement& judgement) {
  const AnalysisOptions& options = judgement.bundles.front().options;
  return fmt::format(
      "Findings: means within {:.3g} % are equivalent; alpha is {:.3g} a family, after Holm.",
      options.margin * 100, options.alpha);
}

std::vector<SharedCheck> shared_checks(const Judgement& judgement) {
  std::vector<SharedCheck> all;
  const auto add = [&](const JudgedGate& gate, const JudgedBundle* bundle) {
    for (const GateCheck& check : gate.checks) {
      const auto same = std::ranges::find_if(all, [&](const SharedCheck& one) {
        return one.kind == gate.kind && one.check->name == check.name &&
               one.check->verdict == check.verdict;
      });
      if (same == all.end()) {
        all.push_back({gate.kind, &check, bundle, 1});
      } else {
        ++same->bundles;
      }
    }
  };
  for (const JudgedBundle& bundle : judgement.bundles) {
    for (const JudgedGate& gate : bundle.gates) add(gate, &bundle);
  }
  add(judgement.regimes.gate, nullptr);
  std::ranges::stable_sort(all, [](const SharedCheck& a, const SharedCheck& b) {
    if (a.check->verdict != b.check->verdict) return a.check->verdict > b.check->verdict;
    return a.kind < b.kind;
  });
  return all;
}

Table gate_table(const Judgement& judgement) {
  const char* looked_at =
      judgement.bundles.size() == 1 ? "looked at" : "looked at (1 to 4: in the first bundle)";
  Table table{
      "", {{"gate", Align::kLeft}, {"verdict", Align::kLeft}, {looked_at, Align::kLeft}}, {}};
  for (const GateKind kind : kGateKinds) {
    table.rows.push_back({gate_label(kind), gate_verdict_text(judgement.gate_verdict(kind)),
                          first_of(judgement, kind).looked_at});
  }
  return table;
}

Table bundle_table(const Judgement& judgement) {
  Table table{.columns = columns_of("<bundle|<1 phases|<2 environment|<3 artifacts|<4 surfacing")};
  if (judgement.claim) table.columns.push_back({"claim holds", Align::kLeft});
  for (const JudgedBundle& bundle : judgement.bundles) {
    std::vector<TableCell> row = {bundle.name};
    for (const JudgedGate& gate : bundle.gates) {
      row.push_back(gate_verdict_text(gate.verdict()));
    }
    if (judgement.claim) {
      row.push_back(gate_verdict_text(bundle.claims.front().answer.verdict));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace assay
