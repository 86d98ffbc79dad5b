// Two bundles against each other: pairs, their tests, and the failures.
#include "analysis/compare/compare.h"

#include <algorithm>
#include <iterator>

#include "analysis/compare/crashes.h"
#include "analysis/compare/judge.h"
#include "analysis/compare/other_tools.h"
#include "analysis/compare/pairing.h"
#include "analysis/compare/parts.h"
#include "analysis/rows/summary.h"
#include "base/text/text.h"

namespace assay {
namespace {

// The cells of one phase, and each arm's together.
void compare_phase(Phase phase, const std::vector<CellPair>& comparable,
                   const std::vector<std::string>& arms, ProcessFigure figure, const Comparison& of,
                   ComparedCells& out) {
  std::vector<CellPair> family;
  std::ranges::copy_if(comparable, std::back_inserter(family), [&](const CellPair& pair) {
    return of.strata[pair.stratum].phase == phase;
  });
  const SidesByGroup sides = sides_by_group(family, of.options, figure);
  for (const CellPair& pair : family) {
    out.cells.push_back(compare_cell(phase, pair, sides, of.options));
  }
  for (const std::string& arm : arms) {
    std::vector<CellPair> parts;
    std::ranges::copy_if(family, std::back_inserter(parts),
                         [&](const CellPair& pair) { return pair.arm == arm; });
    if (parts.size() < 2) continue;  // one stratum is its own combination
    out.combined.push_back(combine_cells(phase, parts, sides, of.options));
  }
}

ComparedCells compare_cells(const std::vector<CellPair>& comparable,
                            const std::vector<std::string>& arms, ProcessFigure figure,
                            const Comparison& of) {
  ComparedCells out;
  for (const Phase phase : kPhases) compare_phase(phase, comparable, arms, figure, of, out);
  return out;
}

}  // namespace

Comparison compare_samples(const Samples& base, const Samples& cand, const CompareOptions& options,
                           bool same_prompts, const AlarmTests& alarm_tests) {
  Comparison out;
  out.options = options;
  // Several runs, and a history, show the differences between runs themselves, the machine's part
  // too.
  out.options.machine_off = options.machine_off && !alarm_tests;
  const Pairing pairing = pair_cells(base, cand);
  out.strata = pairing.strata;
  out.crashes = compare_crashes(out.strata, pairing.pairs, options);
  const std::vector<CellPair> comparable = sort_out(pairing.pairs, same_prompts, out);
  const auto cells_by = [&](ProcessFigure figure) {
    ComparedCells cells = compare_cells(comparable, pairing.arms, figure, out);
    if (alarm_tests) {
      alarm_tests(figure, out.strata, cells);
      return cells;
    }
    const auto between = add_alarm_errors(cells.cells, cells.combined);
    if (figure == ProcessFigure::kMean) out.between_cells = between;
    return cells;
  };
  ComparedCells means = cells_by(ProcessFigure::kMean);
  judge_cells(std::move(means), cells_by(ProcessFigure::kMedian), out);
  return out;
}

Result<std::vector<AxisDifference>> varied_axes(const Bundle& base, const Bundle& cand,
                                                const std::set<std::string>& vary) {
  auto differences = identity_differences(base, cand);
  const bool of_tools = is_imported(base) && is_imported(cand);
  std::vector<std::string> refused;
  for (const AxisDifference& d : differences) {
    if (vary.contains(d.axis)) continue;
    if (of_tools && is_of_newer_build(d, differences)) continue;
    const auto shown = [](const std::string& value) {
      return value.empty() ? "nothing" : quoted_excerpt(value);
    };
    refused.push_back(fmt::format("{}{}: expected {}, found {}", d.axis,
                                  d.about.empty() ? "" : " of " + d.about, shown(d.base),
                                  shown(d.cand)));
  }
  if (refused.empty()) return differences;
  const size_t more = refused.size() - 1;
  return bad_input("{}: identity unlike {}'s: {}{} (--vary AXIS allows it)", cand.folder.string(),
                   base.folder.string(), refused[0],
                   more > 0 ? fmt::format(", and {} more", more) : "");
}

Status check_common_cells(const Comparison& comparison) {
  if (!comparison.crashes.empty()) return {};
  return bad_input("{}: expected cells that {} has too, found none", comparison.cand_name,
                   comparison.base_name);
}

Result<Comparison> compare(const Bundle& base, const Bundle& cand, const CompareOptions& options,
                           const std::set<std::string>& vary, const AlarmTests& alarm_tests) {
  ASSAY_TRY(std::vector<AxisDifference> varied, varied_axes(base, cand, vary));
  ASSAY_TRY(const Samples left, group_rows(base, summarize(base).arms));
  ASSAY_TRY(const Samples right, group_rows(cand, summarize(cand).arms));
  CompareOptions applied = options;
  // If more than the program's code differs, the comparison may be of the machine, or of the
  // compiler of the yardsticks.
  const auto of_code = [](const AxisDifference& d) { return d.axis == "code_sha"; };
  applied.machine_off = options.machine_off && std::ranges::all_of(varied, of_code);
  Comparison out = compare_samples(left, right, applied, true, alarm_tests);
  out.base_name = base.folder.string();
  out.cand_name = cand.folder.string();
  out.varied = std::move(varied);
  out.unstated = unstated_between(base, cand);
  out.base_load = machine_load(base);
  out.cand_load = machine_load(cand);
  out.load_differences = load_differences(out.base_load, out.cand_load);
  if (all_imported({&base, 1}, {&cand, 1})) out.caveat = caveat_of_other_tools(out);
  ASSAY_CHECK(check_common_cells(out));
  return out;
}

}  // namespace assay
