// Holm's correction, verdicts and alarms.
#include "analysis/compare/judge.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "analysis/contrast/process_range.h"
#include "analysis/contrast/verdict.h"

namespace assay {
namespace {

std::vector<ComparedCell*> family_of(std::vector<ComparedCell>& combined,
                                     std::vector<ComparedCell>& cells) {
  std::vector<ComparedCell*> family;
  for (ComparedCell& cell : combined) family.push_back(&cell);
  for (ComparedCell& cell : cells) family.push_back(&cell);
  return family;
}

// Tests of a ratio beyond the margin, which alarms rest on. `with_lost`: of the ratio with what the
// candidate lost as slow as what it kept. Returns their number.
int64_t test_regressions(const std::vector<ComparedCell*>& family, const CompareOptions& options,
                         bool with_lost) {
  const double margin = std::log1p(options.margin);
  for (ComparedCell* cell : family) {
    if (!cell->alarm_error) continue;
    const double lost = with_lost && cell->lost_factor ? std::log(cell->lost_factor->high) : 0;
    cell->regression_test =
        stats::t_test_above(std::log(cell->ratio) + lost - margin, *cell->alarm_error);
  }
  return adjust_by_holm(family, &ComparedCell::regression_test, &ComparedCell::regression_p_holm);
}

// Surely slower by more than the margin, and by more than lies between two runs.
bool is_regression(const ComparedCell& cell, const CompareOptions& options, double alpha) {
  const bool borne_out =
      !cell.too_few || bears_out(cell.ratio_range, Verdict::kSlower, options.margin);
  return borne_out && cell.regression_p_holm && *cell.regression_p_holm < alpha;
}

// The second alarm: judges the cells by typical calls, and leaves the result with each cell of
// `out`.
void judge_typical_calls(ComparedCells typical, Comparison& out) {
  const std::vector<ComparedCell*> of_means = family_of(out.combined, out.cells);
  std::vector<ComparedCell*> family = family_of(typical.combined, typical.cells);
  std::vector<ComparedCell*> judged;
  std::ranges::copy_if(family, std::back_inserter(judged),
                       [](const ComparedCell* cell) { return cell->by_processes; });
  if (judged.empty()) return;
  adjust_by_holm(judged, &ComparedCell::test, &ComparedCell::p_holm);
  out.families.push_back(
      {"typical_regression", out.options.alpha / 2, test_regressions(judged, out.options, false)});
  for (size_t i = 0; i < family.size(); ++i) {
    const ComparedCell& cell = *family[i];
    if (!cell.by_processes) continue;
    of_means[i]->typical =
        TypicalCall{.ratio = cell.ratio,
                    .machine = cell.machine,
                    .ratio_interval = cell.too_few ? std::nullopt : cell.ratio_interval,
                    .ratio_range = cell.ratio_range,
                    .test = cell.test,
                    .p_holm = cell.p_holm,
                    .regression_test = cell.regression_test,
                    .regression_p_holm = cell.regression_p_holm,
                    .regression = is_regression(cell, out.options, out.options.alpha / 2)};
  }
}

void judge_means(Comparison& out) {
  const std::vector<ComparedCell*> family = family_of(out.combined, out.cells);
  const double alpha = out.options.alpha;
  out.families.push_back(
      {"difference", alpha, adjust_by_holm(family, &ComparedCell::test, &ComparedCell::p_holm)});
  out.families.push_back({"equivalence", alpha,
                          adjust_by_holm(family, &ComparedCell::tost, &ComparedCell::tost_p_holm)});
  out.families.push_back({"regression", alpha, test_regressions(family, out.options, true)});
  for (ComparedCell* cell : family) {
    if (!cell->verdict) continue;
    cell->verdict =
        verdict_of({cell->ratio, cell->ratio_interval, cell->too_few, cell->ratio_range},
                   {cell->p_holm, cell->tost_p_holm}, alpha, out.options.margin);
    if (cell->too_few) cell->ratio_interval.reset();
    cell->regression = (cell->verdict == Verdict::kSlower || cell->lost_factor) &&
                       is_regression(*cell, out.options, cell->by_processes ? alpha / 2 : alpha);
  }
}

void add_crash_families(Comparison& out) {
  for (const bool of_phases : {true, false}) {
    const auto tested = std::ranges::count_if(out.crashes, [&](const ComparedCrashes& c) {
      return c.p && c.stratum.has_value() != of_phases;
    });
    out.families.push_back(
        {of_phases ? "crash_rise_by_phase" : "crash_rise_by_cell", out.options.alpha / 2, tested});
  }
}

}  // namespace

void judge_cells(ComparedCells means, ComparedCells typical, Comparison& out) {
  out.cells = std::move(means.cells);
  out.combined = std::move(means.combined);
  judge_means(out);
  judge_typical_calls(std::move(typical), out);
  add_crash_families(out);
}

}  // namespace assay
