// Holm's correction, verdicts and alarms.
#include "analysis/compare/judge.h"

#include <algorithm>
#include <iterator>

#include "analysis/contrast/process_range.h"
#include "stats/hypotheses/multiple.h"

namespace assay {
namespace {

template <typename Raw, typename Adjusted>
int64_t adjust(const std::vector<ComparedCell*>& family, const Raw& raw, const Adjusted& adjusted) {
  std::vector<double> p_values;
  for (const ComparedCell* cell : family) {
    if (cell->*raw) p_values.push_back((cell->*raw)->p);
  }
  const std::vector<double> holm = stats::holm(p_values);
  size_t next = 0;
  for (ComparedCell* cell : family) {
    if (cell->*raw) cell->*adjusted = holm[next++];
  }
  return static_cast<int64_t>(p_values.size());
}

std::vector<ComparedCell*> family_of(std::vector<ComparedCell>& combined,
                                     std::vector<ComparedCell>& cells) {
  std::vector<ComparedCell*> family;
  for (ComparedCell& cell : combined) family.push_back(&cell);
  for (ComparedCell& cell : cells) family.push_back(&cell);
  return family;
}

// Surely slower by more than the margin, and by more than lies between two runs.
bool is_regression(const ComparedCell& cell, const CompareOptions& options, double alpha) {
  return cell.ratio > 1 + options.margin && cell.p_holm && *cell.p_holm < options.alpha &&
         cell.cautious_p_holm && *cell.cautious_p_holm < alpha;
}

bool is_borne_out(const ComparedCell& cell, Verdict verdict, const CompareOptions& options) {
  return !cell.too_few || bears_out(cell.ratio_range, verdict, options.margin);
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
  adjust(judged, &ComparedCell::test, &ComparedCell::p_holm);
  out.families.push_back(
      {"typical_regression", out.options.alpha / 2,
       adjust(judged, &ComparedCell::cautious_test, &ComparedCell::cautious_p_holm)});
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
                    .cautious_test = cell.cautious_test,
                    .cautious_p_holm = cell.cautious_p_holm,
                    .regression = is_regression(cell, out.options, out.options.alpha / 2) &&
                                  is_borne_out(cell, Verdict::kSlower, out.options)};
  }
}

void judge_means(Comparison& out) {
  const std::vector<ComparedCell*> family = family_of(out.combined, out.cells);
  out.families.push_back({"difference", out.options.alpha,
                          adjust(family, &ComparedCell::test, &ComparedCell::p_holm)});
  out.families.push_back({"equivalence", out.options.alpha,
                          adjust(family, &ComparedCell::tost, &ComparedCell::tost_p_holm)});
  out.families.push_back(
      {"regression", out.options.alpha,
       adjust(family, &ComparedCell::cautious_test, &ComparedCell::cautious_p_holm)});
  for (ComparedCell* cell : family) {
    if (!cell->verdict) continue;
    if (cell->tost_p_holm && *cell->tost_p_holm < out.options.alpha) {
      cell->verdict = Verdict::kEquivalent;
    } else if (cell->p_holm && *cell->p_holm < out.options.alpha) {
      cell->verdict = cell->ratio < 1 ? Verdict::kFaster : Verdict::kSlower;
    }
    if (!is_borne_out(*cell, *cell->verdict, out.options)) cell->verdict = Verdict::kInconclusive;
    if (cell->too_few) cell->ratio_interval.reset();
    cell->regression =
        cell->verdict == Verdict::kSlower &&
        is_regression(*cell, out.options,
                      cell->by_processes ? out.options.alpha / 2 : out.options.alpha);
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
