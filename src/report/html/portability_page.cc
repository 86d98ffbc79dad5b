// A judgement across bundles as a page.
#include "base/text/text.h"
#include "report/figures/judgement_figures.h"
#include "report/html/judgement_page.h"
#include "report/judgements/portability_tables.h"

namespace assay {
namespace {

constexpr size_t kMostMoves = 12;  // figures of a bundle beside the first

// "not_portable" as people write it.
Table claim_verdicts(const Portability& of) {
  Table table =
      with_columns(claim_table(of, of.claim_named, kEveryRow).table,
                   {"claim", "verdict", "axis", "points", "index", "95% interval", "band"});
  for (auto& row : table.rows) row[1] = TableCell::of(join(split(cell_text(row[1]), '_'), " "));
  return table;
}

JudgementPart claims_judged(const Portability& of) {
  JudgementPart part{.id = "claims", .title = "Claims"};
  if (auto figure = claims_figure(of)) part.figures.push_back(*std::move(figure));
  if (auto figure = robustness_figure(of)) part.figures.push_back(*std::move(figure));
  for (const JudgedClaim& claim : of.claims) {
    if (claim.reason.empty()) continue;
    part.lines.push_back(fmt::format("- {} ({}): {}.", claim_text(claim.claim.words),
                                     join(split(claim_verdict_name(claim.verdict), '_'), " "),
                                     claim.reason));
  }
  return part;
}

JudgementPart headline_part(const Portability& of) {
  JudgementPart part{.id = "matrix", .title = "Headline matrix"};
  if (of.matrix.empty()) return part;
  part.figures.push_back(headline_figure(of));
  part.lines.emplace_back(
      "The same as a table. Each field has the prefill gain (1 less the geometric mean over strata "
      "of the arm's time over the baseline's) and the rows lost in kv_decode.");
  part.tables.push_back(headline_matrix_table(of, kEveryRow).table);
  return part;
}

JudgementPart verdict_part(const Portability& of) {
  JudgementPart part{.id = "verdicts", .title = "Verdicts and controls"};
  for (size_t r = 1; r < of.regimes.size(); ++r) {
    if (part.figures.size() == kMostMoves) {
      part.lines.push_back(
          fmt::format("The figures are of the first {} bundles; the table of "
                      "verdicts below has all.",
                      kMostMoves));
      break;
    }
    if (auto figure = moves_figure(of, r)) part.figures.push_back(*std::move(figure));
  }
  part.lines.emplace_back("How often each verdict is given, bundle by bundle:");
  part.tables.push_back(regime_table(of, kEveryRow).table);
  return part;
}

JudgementPart responsible_part(const Portability& of) {
  JudgementPart part{.id = "responsible", .title = "What changed, and what is responsible"};
  part.lines = control_lines(of);
  for (std::string& line : change_sentences(of)) part.lines.push_back(std::move(line));
  if (part.lines.empty()) part.lines.emplace_back("No condition is shown to have changed.");
  return part;
}

JudgementPart conditions_part(const Portability& of) {
  JudgementPart part{.id = "conditions", .title = "Every condition", .folded = true};
  part.lines.push_back(fmt::format(
      "ratio: b's mean time over a's. Holm's adjustment goes over all rows of the table. Similar: "
      "within {:.3g} %. responsible and control are of changes alone.",
      of.options.margin * 100));
  part.tables.push_back(verdict_table(of, false, kEveryRow).table);
  return part;
}

}  // namespace

std::vector<JudgementPart> portability_parts(const Portability& of) {
  std::vector<JudgementPart> parts;
  parts.push_back(claims_judged(of));
  parts.push_back(headline_part(of));
  parts.push_back(verdict_part(of));
  parts.push_back(responsible_part(of));
  parts.push_back(conditions_part(of));
  return parts;
}

std::string portability_page(const Portability& of) {
  JudgementPage page;
  page.title = fmt::format("Portability: {} beside {}",
                           counted(std::ssize(of.regimes) - 1, "bundle"), of.regimes[0].name);
  page.failed = !of.failures().empty();
  page.outcome = {
      portability_outcome(of),
      fmt::format("{} of {}; the baseline is {}.", counted(std::ssize(of.conditions), "condition"),
                  counted(std::ssize(of.regimes), "bundle"), of.baseline_arm)};
  page.verdicts = claim_verdicts(of);
  page.parts = portability_parts(of);
  JudgementPart identity{.id = "identity", .title = "Identity"};
  identity.lines = difference_lines(of);
  if (identity.lines.empty()) {
    identity.lines.emplace_back("The bundles differ on no axis of their identity.");
  } else {
    identity.lines.insert(identity.lines.begin(),
                          fmt::format("How the bundles differ from {}:", of.regimes[0].name));
  }
  page.parts.push_back(std::move(identity));
  return judgement_page(page);
}

}  // namespace assay
