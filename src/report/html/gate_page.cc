// The five gates as a page.
#include "base/text/text.h"
#include "report/html/judgement_page.h"
#include "report/judgements/gate_parts.h"
#include "report/judgements/gate_report.h"

namespace assay {

std::string gate_page(const Judgement& judgement) {
  JudgementPage page;
  const std::string of = judgement.bundles.size() == 1
                             ? judgement.bundles.front().name
                             : counted(std::ssize(judgement.bundles), "bundle");
  page.title = fmt::format("Gates: {}",
                           judgement.claim ? claim_text(*judgement.claim) : "the claims of " + of);
  page.failed = judgement.verdict() == GateVerdict::kFail;
  page.outcome = gate_outcome(judgement);
  page.verdicts = gate_table(judgement);
  if (judgement.bundles.size() > 1) {
    page.parts.push_back(
        {.id = "bundles", .title = "Bundles", .tables = {bundle_table(judgement)}});
  }
  for (ReportSection& section : gate_demands(judgement)) {
    page.parts.push_back({.id = fmt::format("demands-{}", page.parts.size()),
                          .title = section.title,
                          .lines = std::move(section.lines),
                          .tables = std::move(section.tables)});
  }
  return judgement_page(page);
}

}  // namespace assay
