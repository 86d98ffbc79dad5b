// Gates as a screen, Markdown, CSV and JSON.
#include "report/judgements/gate_report.h"

#include <algorithm>
#include <map>

#include "base/text/shown_text.h"
#include "base/text/text.h"
#include "report/fitting.h"
#include "report/judgements/gate_parts.h"
#include "report/screen/screen.h"

namespace assay {
namespace {

using GateLines = std::vector<std::string>;

constexpr size_t kGateIndent = 4;
constexpr size_t kMostLinesACheck = 3;
constexpr size_t kMostBundleLines = 12;
constexpr size_t kMostClaimLines = 3;

void add_wrapped_to(const std::string& text, size_t indent, size_t most, GateLines& lines) {
  for (std::string& line : wrapped_lines(shown_line(text), kScreenColumns, indent, most)) {
    lines.push_back(std::move(line));
  }
}

void add_table_to(const Table& table, size_t most_rows, std::string_view what, GateLines& lines) {
  GateLines all = split(table.render(OutputFormat::kTable, kScreenColumns), '\n');
  all.pop_back();  // behind the last line's end
  lines.emplace_back();
  const size_t rows = all.size() - 2;
  const bool fits = rows <= most_rows;
  const size_t shown = fits ? rows : most_rows - 1;
  lines.insert(lines.end(), all.begin(), all.begin() + static_cast<ptrdiff_t>(shown + 2));
  if (!fits) lines.push_back(fmt::format("  and {} more {}: -o md", rows - shown, what));
}

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

GateLines check_lines(const Judgement& judgement, const SharedCheck& shared) {
  const GateCheck& check = *shared.check;
  GateLines lines;
  add_wrapped_to(
      fmt::format("- {}: {}, {}{}: {}", gate_verdict_text(check.verdict), gate_title(shared.kind),
                  check.name, where_text(judgement, shared), check.found),
      kGateIndent - 2, kMostLinesACheck, lines);
  const bool told = !check.decided_by.empty() && check.found.contains(check.decided_by.front());
  if (!check.decided_by.empty() && !told) {
    add_wrapped_to("  decided by " + decided_text(check, 1), kGateIndent, 1, lines);
  }
  return lines;
}

// Adds for each gate the demands that every bundle meets: "- pass: Phase separation: claims, rows".
void add_passed(const Judgement& judgement, const std::vector<SharedCheck>& checks,
                std::vector<GateLines>& items) {
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
    GateLines lines;
    add_wrapped_to(fmt::format("- pass: {}: {}", gate_title(kind), join(names, ", ")),
                   kGateIndent - 2, kMostLinesACheck, lines);
    items.push_back(std::move(lines));
  }
}

// Adds as many of the demands as fit, the worst first.
void add_checks(const Judgement& judgement, size_t room, GateLines& lines) {
  if (room < 3) return;
  const std::vector<SharedCheck> checks = shared_checks(judgement);
  std::vector<GateLines> items;
  for (const SharedCheck& shared : checks) {
    if (shared.check->verdict != GateVerdict::kPass) {
      items.push_back(check_lines(judgement, shared));
    }
  }
  add_passed(judgement, checks, items);
  lines.insert(lines.end(), {"", "What was found:"});
  room -= 2;
  for (size_t i = 0; i < items.size(); ++i) {
    const size_t spare = i + 1 < items.size() ? 1 : 0;
    if (items[i].size() + spare > room) {
      lines.push_back(fmt::format("  and {} more: -o md", items.size() - i));
      return;
    }
    lines.insert(lines.end(), items[i].begin(), items[i].end());
    room -= items[i].size();
  }
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

void add_claim(const Judgement& judgement, GateLines& lines) {
  if (!judgement.claim) {
    add_wrapped_to("claims: " + claims_text(judgement), kGateIndent, 2, lines);
    return;
  }
  add_wrapped_to("claim: " + claim_text(*judgement.claim), kGateIndent, 2, lines);
  const JudgedBundle* said = &judgement.bundles.front();
  for (const JudgedBundle& bundle : judgement.bundles) {
    if (bundle.claims.front().answer.verdict > said->claims.front().answer.verdict) said = &bundle;
  }
  const std::string in = judgement.bundles.size() > 1 ? fmt::format(" (in {})", said->name) : "";
  add_wrapped_to(
      fmt::format("holds: {}{}: {}", gate_verdict_text(said->claims.front().answer.verdict), in,
                  said->claims.front().answer.because),
      kGateIndent, kMostClaimLines, lines);
}

std::string findings_text(const JudgedBundle& bundle) {
  if (bundle.findings_from_file) return "findings: its analysis/findings.json";
  return fmt::format("findings: made anew ({})", bundle.why_anew);
}

void add_bundles(const Judgement& judgement, GateLines& lines) {
  if (judgement.bundles.size() > 1) {
    add_table_to(bundle_table(judgement), kMostBundleLines, "bundles", lines);
    return;
  }
  const JudgedBundle& bundle = judgement.bundles.front();
  add_wrapped_to(fmt::format("bundle: {} ({}, {})", bundle.name, bundle.study.name,
                             counted(bundle.study.rows, "row")),
                 kGateIndent, 2, lines);
  add_wrapped_to(findings_text(bundle), kGateIndent, 2, lines);
}

std::string gate_screen(const Judgement& judgement) {
  GateLines lines;
  lines.push_back("gates: " + gates_headline(judgement));
  lines.push_back(gate_options_text(judgement));
  if (judgement.bundles.size() == 1) add_bundles(judgement, lines);
  add_claim(judgement, lines);
  add_table_to(gate_table(judgement), kGateKinds.size(), "gates", lines);
  if (judgement.bundles.size() > 1) add_bundles(judgement, lines);
  add_checks(judgement, kScreenLines - std::min(kScreenLines, lines.size()), lines);
  return join(lines, "\n") + "\n";
}

// The members that decide a check, three at most: a line with all is too long for a page.
TableCell decided_cell(const GateCheck& check) {
  constexpr size_t kMostInACell = 3;
  const std::string text = decided_text(check, kMostInACell);
  return text.empty() ? TableCell::absent() : TableCell::of(text);
}

void add_check_rows(const JudgedGate& gate, Table& table) {
  for (const GateCheck& check : gate.checks) {
    table.rows.push_back(
        {TableCell::of(std::string(gate_title(gate.kind))), TableCell::of(check.name),
         TableCell::of(gate_verdict_text(check.verdict)),
         check.looked_at.empty() ? TableCell::absent() : TableCell::of(check.looked_at),
         TableCell::of(check.found), decided_cell(check)});
  }
}

Table check_table(const JudgedBundle* bundle, const JudgedGate* regimes) {
  Table table{"",
              {{"gate", Align::kLeft},
               {"demand", Align::kLeft},
               {"verdict", Align::kLeft},
               {"looked at", Align::kLeft},
               {"found", Align::kLeft},
               {"decided by", Align::kLeft}},
              {}};
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
  Table table{"",
              {{"claim", Align::kLeft},
               {"holds", Align::kLeft},
               {"1", Align::kLeft},
               {"2", Align::kLeft},
               {"3", Align::kLeft},
               {"4", Align::kLeft},
               {"5", Align::kLeft},
               {"because", Align::kLeft}},
              {}};
  for (const GatedClaim& one : bundle.claims) {
    const std::string text = claim_text(one.claim);
    std::vector<TableCell> row = {TableCell::of(text),
                                  TableCell::of(gate_verdict_text(one.answer.verdict))};
    for (const GateVerdict verdict : one.gates) {
      row.push_back(TableCell::of(gate_verdict_text(verdict)));
    }
    row.push_back(TableCell::of(gate_verdict_text(reproduced.at(text))));
    row.push_back(TableCell::of(one.answer.because));
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::vector<ReportSection> gate_sections(const Judgement& judgement) {
  ReportSection gates{"Gates", {}, {gate_table(judgement)}};
  if (judgement.claim) {
    gates.lines.push_back(fmt::format("Claim: {}.", claim_text(*judgement.claim)));
  }
  gates.lines.push_back(gate_options_text(judgement));
  if (judgement.bundles.size() > 1) gates.tables.push_back(bundle_table(judgement));
  std::vector<ReportSection> sections = gate_demands(judgement);
  sections.insert(sections.begin(), std::move(gates));
  return sections;
}

void add_flat_rows(const std::string& bundle, const JudgedGate& gate, Table& table) {
  for (const GateCheck& check : gate.checks) {
    table.rows.push_back(
        {bundle.empty() ? TableCell::absent() : TableCell::of(bundle),
         TableCell::of(std::string(gate_name(gate.kind))), TableCell::of(check.name),
         TableCell::of(std::string(gate_word(check.verdict))), TableCell::of(check.looked_at),
         TableCell::of(check.found), TableCell::of(join(check.decided_by, "; ")),
         TableCell::of(check.decided_by_more)});
  }
}

Table flat_checks(const Judgement& judgement) {
  Table table;
  for (const char* name : {"bundle", "gate", "demand", "verdict", "looked_at", "found",
                           "decided_by", "decided_by_more"}) {
    table.columns.push_back({name});
  }
  for (const JudgedBundle& bundle : judgement.bundles) {
    for (const JudgedGate& gate : bundle.gates) add_flat_rows(bundle.name, gate, table);
  }
  add_flat_rows("", judgement.regimes.gate, table);
  return table;
}

}  // namespace

std::string render_judgement(const Judgement& judgement, OutputFormat format) {
  switch (format) {
    case OutputFormat::kJson:
      return to_json_text(judgement_to_json(judgement));
    case OutputFormat::kCsv:
      return flat_checks(judgement).render(OutputFormat::kCsv);
    case OutputFormat::kMarkdown:
      return render_markdown("Gates: " + gates_headline(judgement), gate_sections(judgement));
    case OutputFormat::kTable:
      break;
  }
  return gate_screen(judgement);
}

std::vector<ReportSection> gate_demands(const Judgement& judgement) {
  std::vector<ReportSection> sections;
  const auto reproduced = reproduced_verdicts(judgement);
  for (const JudgedBundle& bundle : judgement.bundles) {
    const bool alone = judgement.bundles.size() == 1;
    ReportSection section{"Demands of " + bundle.name,
                          {},
                          {check_table(&bundle, alone ? &judgement.regimes.gate : nullptr)}};
    if (!bundle.claims.empty()) section.tables.push_back(claim_table(reproduced, bundle));
    sections.push_back(std::move(section));
  }
  if (judgement.bundles.size() > 1) {
    sections.push_back(
        {"Demands of all bundles together", {}, {check_table(nullptr, &judgement.regimes.gate)}});
  }
  return sections;
}

std::vector<std::string> gate_outcome(const Judgement& judgement) {
  std::vector<std::string> lines = {gates_headline(judgement) + "."};
  if (!judgement.claim) {
    lines.push_back(claims_text(judgement) + ".");
  } else {
    for (const JudgedBundle& bundle : judgement.bundles) {
      lines.push_back(fmt::format("{}: {}", bundle.name, bundle.claims.front().answer.because));
    }
  }
  lines.push_back(gate_options_text(judgement));
  return lines;
}

ReportSection gate_section(const Judgement& judgement) {
  ReportSection section{
      "Gates", {}, {check_table(&judgement.bundles.front(), &judgement.regimes.gate)}};
  section.lines.push_back(gates_headline(judgement) + ".");
  return section;
}

}  // namespace assay
