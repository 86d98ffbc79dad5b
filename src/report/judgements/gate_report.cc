// Gates as a screen, Markdown, CSV and JSON.
#include "report/judgements/gate_report.h"

#include <algorithm>
#include <map>

#include "base/text/text.h"
#include "report/judgements/gate_parts.h"
#include "report/screen/document_screen.h"

namespace assay {
namespace {

constexpr size_t kBundleLines = 14;
constexpr size_t kFoundLines = 4;

// The bundles that a check is about, if there are several: ", 3 of 5 bundles, the first b1".
std::string where_text(const Judgement& judgement, const SharedCheck& shared) {
  if (judgement.bundles.size() == 1 || shared.bundle == nullptr) return "";
  if (shared.bundles == std::ssize(judgement.bundles)) return ", every bundle";
  return fmt::format(", {} of {} bundles, the first {}", shared.bundles, judgement.bundles.size(),
                     shared.bundle->name);
}

std::string decided_text(const GateCheck& check, size_t most) {
  std::vector<std::string> shown(
      check.decided_by.begin(),
      check.decided_by.begin() +
          std::min<ptrdiff_t>(std::ssize(check.decided_by), static_cast<ptrdiff_t>(most)));
  std::string text = join(shown, "; ");
  const int64_t more = std::ssize(check.decided_by) - std::ssize(shown) + check.decided_by_more;
  if (more > 0) text += fmt::format("; and {} more", more);
  return text;
}

std::string check_sentence(const Judgement& judgement, const SharedCheck& shared) {
  const GateCheck& check = *shared.check;
  const bool told = !check.decided_by.empty() && check.found.contains(check.decided_by.front());
  return fmt::format(
      "{}: {}, {}{}: {}{}", gate_verdict_text(check.verdict), gate_title(shared.kind), check.name,
      where_text(judgement, shared), check.found,
      check.decided_by.empty() || told ? ""
                                       : fmt::format(" (decided by {})", decided_text(check, 1)));
}

// For each gate the demands that every bundle meets: "pass: Phase separation: claims, rows".
void add_passed(const Judgement& judgement, const std::vector<SharedCheck>& checks,
                std::vector<std::string>& sentences) {
  for (const GateKind kind : kGateKinds) {
    std::vector<std::string> names;
    for (const SharedCheck& shared : checks) {
      const bool everywhere =
          shared.bundle == nullptr || shared.bundles == std::ssize(judgement.bundles);
      if (shared.kind == kind && shared.check->verdict == GateVerdict::kPass && everywhere) {
        names.push_back(shared.check->name);
      }
    }
    if (names.empty()) continue;
    sentences.push_back(fmt::format("pass: {}: {}", gate_title(kind), join(names, ", ")));
  }
}

// The demands, the worst first.
ReportSection found_section(const Judgement& judgement) {
  std::vector<std::string> sentences;
  const std::vector<SharedCheck> checks = shared_checks(judgement);
  for (const SharedCheck& shared : checks) {
    if (shared.check->verdict != GateVerdict::kPass) {
      sentences.push_back(check_sentence(judgement, shared));
    }
  }
  add_passed(judgement, checks, sentences);
  return {.title = "What was found",
          .lines = as_list(sentences),
          .id = "found",
          .screen_lines = kFoundLines};
}

std::string claims_text(const Judgement& judgement) {
  int64_t claims = 0;
  int64_t clean = 0;
  int64_t silent = 0;
  for (const JudgedBundle& bundle : judgement.bundles) {
    silent += bundle.silent;
    for (const GatedClaim& one : bundle.claims) {
      ++claims;
      clean += worst(one.gates) == GateVerdict::kPass ? 1 : 0;
    }
  }
  std::string text =
      fmt::format("{}; {} of them {} gates 1 to 4",
                  counted(claims, "decision that names an arm", "decisions that name an arm"),
                  clean, clean == 1 ? "passes" : "pass");
  if (silent > 0) {
    text += fmt::format("; {} no arm and {} nothing",
                        counted(silent, "decision names", "decisions name"),
                        silent == 1 ? "claims" : "claim");
  }
  return text;
}

// Which claims were judged, and whether a named one holds.
void add_claim(const Judgement& judgement, std::vector<std::string>& outcome) {
  if (!judgement.claim) {
    outcome.push_back("Claims: " + claims_text(judgement) + ".");
    return;
  }
  outcome.push_back(fmt::format("Claim: {}.", claim_text(*judgement.claim)));
  const JudgedBundle* said = &judgement.bundles.front();
  for (const JudgedBundle& bundle : judgement.bundles) {
    if (bundle.claims.front().answer.verdict > said->claims.front().answer.verdict) said = &bundle;
  }
  const std::string in = judgement.bundles.size() > 1 ? fmt::format(" (in {})", said->name) : "";
  outcome.push_back(fmt::format("Holds: {}{}: {}.",
                                gate_verdict_text(said->claims.front().answer.verdict), in,
                                said->claims.front().answer.because));
}

std::string findings_text(const JudgedBundle& bundle) {
  if (bundle.findings_from_file) return "findings: its analysis/findings.json";
  return fmt::format("findings: made anew ({})", bundle.why_anew);
}

std::string bundle_text(const JudgedBundle& bundle) {
  return fmt::format("Bundle: {} ({}, {}); {}.", bundle.name, bundle.study.name,
                     counted(bundle.study.rows, "row"), findings_text(bundle));
}

// The members that decide a check, three at most: a line with all is too long for a page.
TableCell decided_cell(const GateCheck& check) {
  constexpr size_t kMostInACell = 3;
  const std::string text = decided_text(check, kMostInACell);
  return TableCell::if_any(text);
}

void add_check_rows(const JudgedGate& gate, Table& table) {
  for (const GateCheck& check : gate.checks) {
    table.rows.push_back({std::string(gate_title(gate.kind)), check.name,
                          gate_verdict_text(check.verdict), TableCell::if_any(check.looked_at),
                          check.found, decided_cell(check)});
  }
}

Table check_table(const JudgedBundle* bundle, const JudgedGate* regimes) {
  Table table{.columns = columns_of("<gate|<demand|<verdict|<looked at|<found|<decided by")};
  if (bundle != nullptr) {
    for (const JudgedGate& gate : bundle->gates) add_check_rows(gate, table);
  }
  if (regimes != nullptr) add_check_rows(*regimes, table);
  return table;
}

// Gate 5's verdict on each claim, by the claim's words.
std::map<std::string, GateVerdict> reproduced_verdicts(const Judgement& judgement) {
  std::map<std::string, GateVerdict> verdicts;
  for (const ReproducedClaim& one : judgement.regimes.claims) {
    verdicts[claim_text(one.claim)] = one.verdict;
  }
  return verdicts;
}

Table claim_table(const std::map<std::string, GateVerdict>& reproduced,
                  const JudgedBundle& bundle) {
  Table table{.columns = columns_of("<claim|<holds|<1|<2|<3|<4|<5|<because")};
  for (const GatedClaim& one : bundle.claims) {
    const std::string text = claim_text(one.claim);
    std::vector<TableCell> row = {text, gate_verdict_text(one.answer.verdict)};
    for (const GateVerdict verdict : one.gates) {
      row.push_back(gate_verdict_text(verdict));
    }
    row.push_back(gate_verdict_text(reproduced.at(text)));
    row.push_back(one.answer.because);
    table.rows.push_back(std::move(row));
  }
  return table;
}

// Each bundle's demands with the members that decide them, and its claims; then those of all
// together.
void add_demands(const Judgement& judgement, std::vector<ReportSection>& sections) {
  const auto reproduced = reproduced_verdicts(judgement);
  const bool alone = judgement.bundles.size() == 1;
  const auto add = [&](const std::string& of, std::vector<Table> tables) {
    sections.push_back({.title = "Demands of " + of,
                        .tables = std::move(tables),
                        .id = fmt::format("demands-{}", sections.size())});
  };
  for (const JudgedBundle& bundle : judgement.bundles) {
    std::vector<Table> tables = {check_table(&bundle, alone ? &judgement.regimes.gate : nullptr)};
    if (!bundle.claims.empty()) tables.push_back(claim_table(reproduced, bundle));
    add(bundle.name, std::move(tables));
  }
  if (!alone) add("all bundles together", {check_table(nullptr, &judgement.regimes.gate)});
}

void add_flat_rows(const std::string& bundle, const JudgedGate& gate, Table& table) {
  for (const GateCheck& check : gate.checks) {
    table.rows.push_back({TableCell::if_any(bundle), gate_name(gate.kind), check.name,
                          std::string(gate_word(check.verdict)), check.looked_at, check.found,
                          join(check.decided_by, "; "), check.decided_by_more});
  }
}

Table flat_checks(const Judgement& judgement) {
  Table table{.columns = columns_of(
                  "bundle|gate|demand|verdict|looked_at|found|decided_by|decided_by_more")};
  for (const JudgedBundle& bundle : judgement.bundles) {
    for (const JudgedGate& gate : bundle.gates) add_flat_rows(bundle.name, gate, table);
  }
  add_flat_rows("", judgement.regimes.gate, table);
  return table;
}

}  // namespace

Document gate_document(const Judgement& judgement) {
  const bool alone = judgement.bundles.size() == 1;
  const std::string of =
      alone ? judgement.bundles.front().name : counted(std::ssize(judgement.bundles), "bundle");
  Document document{.title = fmt::format("Gates: {}", judgement.claim ? claim_text(*judgement.claim)
                                                                      : "the claims of " + of),
                    .failed = judgement.verdict() == GateVerdict::kFail,
                    .outcome = {gates_headline(judgement) + "."},
                    .verdicts = gate_table(judgement)};
  add_claim(judgement, document.outcome);
  if (alone) document.outcome.push_back(bundle_text(judgement.bundles.front()));
  document.outcome.push_back(gate_options_text(judgement));
  if (!alone) {
    document.sections.push_back({.title = "Bundles",
                                 .tables = {bundle_table(judgement)},
                                 .id = "bundles",
                                 .screen_lines = kBundleLines});
  }
  document.sections.push_back(found_section(judgement));
  add_demands(judgement, document.sections);
  return document;
}

std::string render_judgement(const Judgement& judgement, OutputFormat format, size_t columns) {
  return render_document(
      {[&] { return gate_document(judgement); }, [&] { return flat_checks(judgement); },
       [&] { return judgement_to_json(judgement); }},
      format, columns);
}

ReportSection gate_section(const Judgement& judgement) {
  return {.title = "Gates",
          .lines = {gates_headline(judgement) + "."},
          .tables = {check_table(&judgement.bundles.front(), &judgement.regimes.gate)}};
}

}  // namespace assay
