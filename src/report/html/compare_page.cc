// A comparison as a page.
#include "report/figures/judgement_figures.h"
#include "report/html/judgement_page.h"
#include "report/judgements/compare_report.h"
#include "report/judgements/compare_verdict.h"

namespace assay {

std::string comparison_page(const Comparison& of, bool on_regression) {
  JudgementPage page;
  const std::string word = verdict_word(of, on_regression);
  page.title = fmt::format("Comparison: {} with {}", of.cand_name, of.base_name);
  page.failed = word == "FAILS";
  std::vector<ReportSection> sections = comparison_sections(of, on_regression);
  page.outcome = std::move(sections.front().lines);
  page.outcome.front() = fmt::format("{}: {}", word, page.outcome.front());
  for (const Phase phase : kPhases) {
    if (auto figure = comparison_figure(of, phase)) {
      page.parts.push_back({.id = std::string(phase_name(phase)),
                            .title = std::string(phase_name(phase)),
                            .figures = {*std::move(figure)}});
    }
  }
  for (size_t i = 1; i < sections.size(); ++i) {
    page.parts.push_back({.id = fmt::format("part-{}", i),
                          .title = std::move(sections[i].title),
                          .lines = std::move(sections[i].lines),
                          .tables = std::move(sections[i].tables)});
  }
  return judgement_page(page);
}

}  // namespace assay
