// A comparison as a screen, text, Markdown, CSV and JSON.
#include "report/judgements/compare_report.h"

#include <algorithm>

#include "base/text/text.h"
#include "report/judgements/compare_cells.h"
#include "report/judgements/compare_verdict.h"
#include "report/screen/document_screen.h"
#include "report/screen/fitter.h"
#include "report/sections/sections.h"

namespace assay {
namespace {

TableCell detectable_cell(const std::optional<double>& share) {
  return share && *share >= 10 ? TableCell{*share, ">999 %"} : percent_cell(share);
}

TableCell noise_cell(const std::optional<ComparedSide>& side) {
  return side ? percent_cell(side->noise) : TableCell::absent();
}

TableCell process_cell(const ComparedCell& cell) {
  return TableCell(fmt::format("{}, {}", cell.base->processes, cell.cand->processes));
}

TableCell process_noise_cell(const ComparedCell& cell) {
  const auto& base = cell.base->process_noise;
  const auto& cand = cell.cand->process_noise;
  return base && cand ? percent_cell(std::max(*base, *cand)) : TableCell::absent();
}

TableCell machine_cell(const ComparedCell& cell) {
  return cell.machine ? signed_percent(cell.machine->ratio - 1) : TableCell::absent();
}

TableCell typical_spread(const TypicalCall& typical) {
  return share_spread(typical.ratio_interval, typical.ratio_range);
}

bool any_machine(const Comparison& c) {
  return std::ranges::any_of(c.cells, [](const auto& cell) { return cell.machine.has_value(); });
}

Table cell_table(const Comparison& c, Phase phase) {
  Table table{.columns =
                  columns_of("<stratum|<arm|base ms|noise|cand. ms|its noise|proc.|proc. noise|"
                             "diff_ms|machine|%diff|95% interval|typical|its 95% interval|p_holm|"
                             "<status")};
  for (const ComparedCell& cell : c.cells) {
    if (cell.phase != phase) continue;
    table.rows.push_back(
        {stratum_label(c.strata, *cell.stratum), cell.arm, mean_cell(cell.base),
         noise_cell(cell.base), mean_cell(cell.cand), noise_cell(cell.cand), process_cell(cell),
         process_noise_cell(cell), TableCell(cell.difference_ms, 3), machine_cell(cell),
         signed_percent(cell.ratio - 1), share_spread(cell.ratio_interval, cell.ratio_range),
         typical_cell(cell), cell_of(cell.typical, typical_spread), p_holm_cell(cell.p_holm),
         status_text(cell)});
  }
  if (!any_machine(c)) drop_column("machine", table);
  if (!c.in_one_run) drop_column("its 95% interval", table);
  return table;
}

Table combined_table(const Comparison& c) {
  Table table{.columns = columns_of("<phase|<arm|strata|machine|%diff|95% interval|typical|p_holm|"
                                    "tost_p_holm|mde|<status")};
  for (const ComparedCell& cell : c.combined) {
    table.rows.push_back({phase_name(cell.phase), cell.arm, cell.strata, machine_cell(cell),
                          signed_percent(cell.ratio - 1),
                          share_spread(cell.ratio_interval, cell.ratio_range), typical_cell(cell),
                          p_holm_cell(cell.p_holm), p_holm_cell(cell.tost_p_holm),
                          detectable_cell(cell.minimum_detectable), status_text(cell)});
  }
  if (!any_machine(c)) drop_column("machine", table);
  return table;
}

// Alarms first, then combined figures and cells as the comparison has them.
std::vector<const ComparedCell*> by_weight(const Comparison& c) {
  std::vector<const ComparedCell*> all;
  for (const auto* cells : {&c.combined, &c.cells}) {
    for (const ComparedCell& cell : *cells) all.push_back(&cell);
  }
  std::ranges::stable_partition(all, [](const ComparedCell* cell) { return cell->alarm(); });
  return all;
}

// Two programs that took turns in one run are judged by their typical calls too.
Table verdict_table(const Comparison& c) {
  Table table{.columns = columns_of(
                  "<phase|<stratum|<arm|base ms|cand. ms|%diff|95% interval|typical|<verdict")};
  for (const ComparedCell* cell : by_weight(c)) {
    table.rows.push_back({phase_name(cell->phase),
                          TableCell(cell->stratum ? stratum_label(c.strata, *cell->stratum)
                                                  : fmt::format("all {}", cell->strata)),
                          cell->arm, mean_cell(cell->base), mean_cell(cell->cand),
                          signed_percent(cell->ratio - 1),
                          share_spread(cell->ratio_interval, cell->ratio_range),
                          typical_cell(*cell), status_text(*cell)});
  }
  if (!c.in_one_run) drop_column("typical", table);
  return table;
}

std::string verdict_legend(const Comparison& c) {
  std::string text = "base ms, cand. ms: mean times; %diff above 0: the candidate is slower";
  if (c.in_one_run) {
    text +=
        "; typical: the same of the median pair of each process, which a few long "
        "interruptions don't decide";
  }
  return text +
         fmt::format("; SLOWER: shown to be slower by more than {:.3g} %", c.options.margin * 100);
}

std::string died_text(const Losses& of) {
  return fmt::format("{}/{}", of.died, of.processes.size());
}

std::string rate_text(const Losses& of, const std::optional<stats::Interval>& interval) {
  std::string text = fmt::format("{}/{}", of.lost, of.attempted);
  if (interval) {
    text += fmt::format(" [{:.1f}, {:.1f}] %", interval->low * 100, interval->high * 100);
  }
  return text;
}

// Whole phases, and cells that lost a row.
Table crash_table(const Comparison& c) {
  Table table{.columns = columns_of(
                  "<phase|<stratum|<arm|base lost|died|cand. lost|its died|p_holm|<status")};
  for (const ComparedCrashes& x : c.crashes) {
    if (x.stratum && x.base.lost + x.cand.lost == 0) continue;
    table.rows.push_back({phase_name(x.phase),
                          TableCell(x.stratum ? stratum_label(c.strata, *x.stratum) : "all"), x.arm,
                          rate_text(x.base, x.base_interval), died_text(x.base),
                          rate_text(x.cand, x.cand_interval), died_text(x.cand),
                          p_holm_cell(x.p_holm), x.rise ? "RISE" : "no rise"});
  }
  return table;
}

void add_reasons(const Comparison& c, const std::string& what, const std::vector<CellReason>& cells,
                 Table& table) {
  for (const CellReason& cell : cells) {
    const Stratum& stratum = c.strata[cell.stratum];
    table.rows.push_back({what, phase_name(stratum.phase), stratum_label(c.strata, cell.stratum),
                          cell.arm, TableCell::if_any(cell.reason)});
  }
}

Table reason_table(const Comparison& c) {
  Table table{.columns = columns_of("<what|<phase|<stratum|<arm|<reason")};
  add_reasons(c, "MISSING", c.missing, table);
  add_reasons(c, "LOST", c.lost, table);
  add_reasons(c, "OUTPUT", c.broken, table);
  add_reasons(c, "changed", c.notes, table);
  add_reasons(c, "not comparable", c.not_comparable, table);
  add_reasons(c, "new", c.added, table);
  return table;
}

ReportSection identity_part(const Comparison& c) {
  ReportSection section{.title = c.in_one_run ? "Programs" : "Bundles", .screen_lines = 3};
  section.lines.push_back(fmt::format("base: {}", c.base_name));
  section.lines.push_back(fmt::format("candidate: {}", c.cand_name));
  if (c.in_one_run) {
    const std::string load = load_text(c.base_load);
    if (!load.empty()) section.lines.push_back(fmt::format("measured at: {}", load));
    return section;
  }
  for (const AxisDifference& d : c.varied) {
    section.lines.push_back(
        fmt::format("varied: {}{}: {} -> {}", d.axis, d.about.empty() ? "" : " of " + d.about,
                    d.base.empty() ? "nothing" : d.base, d.cand.empty() ? "nothing" : d.cand));
  }
  if (!c.unstated.empty()) {
    section.lines.push_back(fmt::format(
        "Not stated by both bundles, so that they may differ there: {}.", join(c.unstated, ", ")));
  }
  if (c.varied.empty()) {
    section.lines.push_back(fmt::format("The bundles' identities agree on every axis{}.",
                                        c.unstated.empty() ? "" : " that both state"));
  }
  for (const auto& [name, load] : {std::pair{"base", &c.base_load}, {"candidate", &c.cand_load}}) {
    const std::string text = load_text(*load);
    section.lines.push_back(
        fmt::format("The {} was measured at: {}", name, text.empty() ? "no load recorded" : text));
  }
  return section;
}

ReportSection crash_part(const Comparison& c) {
  ReportSection section{.title = "Crash rates"};
  const bool lost = std::ranges::any_of(c.crashes, [](const auto& each) {
    return each.base.lost + each.cand.lost + each.base.died + each.cand.died > 0;
  });
  if (!lost) {
    int64_t base = 0;
    int64_t cand = 0;
    for (const ComparedCrashes& of_phase : c.crashes) {
      base += of_phase.stratum ? 0 : of_phase.base.attempted;
      cand += of_phase.stratum ? 0 : of_phase.cand.attempted;
    }
    section.lines.push_back(
        fmt::format("No row was lost: all {} attempts of the base and {} of the candidate are ok.",
                    base, cand));
    return section;
  }
  section.tables = {crash_table(c)};
  section.screen_lines = 4;
  section.lines.emplace_back(
      "Lost rows out of attempted rows, with Wilson's interval, and processes that died out of "
      "all. "
      "p is one-sided: of the processes where any died, else of the rows. Phases "
      "and cells are two families: a rise needs a p, adjusted by Holm within its family, below "
      "half "
      "of alpha.");
  return section;
}

ReportSection combined_part(const Comparison& c) {
  ReportSection section{"Combined over strata", {}, {combined_table(c)}};
  section.lines.push_back(fmt::format(
      "%diff: the geometric mean of the strata's ratios of means. Intervals and t tests "
      "use the logarithms of the means of {}. p is Holm-adjusted over this table and all "
      "cells ({} tests, alpha {}). tost_p: the p of equivalence within {:.3g} %. mde: the "
      "smallest difference that is found with {:.0f} % power.",
      c.in_one_run                    ? "pairs of processes"
      : c.base_runs + c.cand_runs > 2 ? "runs"
                                      : "processes, widened for dependence and drift",
      c.families.front().members, c.options.alpha, c.options.margin * 100, c.options.power * 100));
  return section;
}

// `explained`: the meaning of its columns stands above an earlier table.
ReportSection cells_part(const Comparison& c, Phase phase, bool explained) {
  ReportSection section{
      fmt::format("{}, cell by cell", phase_name(phase)), {}, {cell_table(c, phase)}};
  if (explained) return section;
  section.lines.emplace_back(
      "base ms, cand. ms: mean time of warm ok rows. noise: their sd / mean. proc.: worker "
      "processes of both; proc. noise: the larger sd / mean of their means. %diff above 0: the "
      "candidate is slower. SLOWER: shown to be slower by more than the margin, and by more than "
      "two "
      "runs of one program may differ.");
  if (any_machine(c)) {
    section.lines.emplace_back(
        "machine: how much slower the machine made the candidate's times, as measured by fixed "
        "work beside "
        "each call. All figures but the noises are corrected for it, by half on each side.");
  }
  return section;
}

std::vector<ReportSection> sections_of(const Comparison& c) {
  std::vector<ReportSection> sections;
  Table reasons = reason_table(c);
  if (!reasons.rows.empty()) {
    sections.push_back({.title = "Cells that weren't compared, or changed",
                        .tables = {std::move(reasons)},
                        .screen_lines = 4});
  }
  sections.push_back(identity_part(c));
  sections.push_back(crash_part(c));
  if (!c.combined.empty()) sections.push_back(combined_part(c));
  bool explained = false;
  for (const Phase phase : kPhases) {
    const bool any =
        std::ranges::any_of(c.cells, [&](const auto& cell) { return cell.phase == phase; });
    if (!any) continue;
    sections.push_back(cells_part(c, phase, explained));
    explained = true;
  }
  return sections;
}

Table flat_cells(const Comparison& c) {
  Table table{.columns = columns_of(
                  "phase|model|scenario|new_tokens|batch|arm|n_ref|n_cmp|ref_ms|ref_noise|cmp_ms|"
                  "cmp_noise|diff_ms|ratio|ratio_low|ratio_high|ratio_range_low|ratio_range_high|"
                  "p_holm|tost_p_holm|mde|status|regression|ref_processes|cmp_processes|"
                  "ref_process_noise|cmp_process_noise|typical_ratio|machine_ratio")};
  for (const ComparedCell& cell : c.cells) {
    const Stratum& s = c.strata[*cell.stratum];
    table.rows.push_back(row_of(
        phase_name(s.phase), s.model, s.scenario, s.new_tokens, s.batch, cell.arm, cell.n_base,
        cell.n_cand, cell.base->mean_ms, cell.base->noise, cell.cand->mean_ms, cell.cand->noise,
        cell.difference_ms, cell.ratio, low_cell(cell.ratio_interval),
        high_cell(cell.ratio_interval), low_cell(cell.ratio_range), high_cell(cell.ratio_range),
        cell.p_holm, cell.tost_p_holm, cell.minimum_detectable,
        cell.verdict ? verdict_name(*cell.verdict) : "not_decided", TableCell(cell.alarm(), ""),
        cell.base->processes, cell.cand->processes, cell.base->process_noise,
        cell.cand->process_noise, cell_of(cell.typical, &TypicalCall::ratio),
        cell_of(cell.machine, &MachineShare::ratio)));
  }
  return table;
}

// The comparison, with its outcome first.
Json comparison_json(const Comparison& c, const CompareDemands& demands) {
  Json json = {{"verdict", compare_outcome_name(compare_outcome(c, demands))},
               {"unmet", unmet_demands(c, demands)}};
  json.update(comparison_to_json(c));
  return json;
}

}  // namespace

Document comparison_document(const Comparison& c, const CompareDemands& demands) {
  const std::string word = verdict_word(c, demands);
  Document document{.title = fmt::format("Comparison: {} with {}", c.cand_name, c.base_name),
                    .failed = word != "passes",
                    .outcome = verdict_top(c, demands),
                    .verdicts = verdict_table(c),
                    .legend = verdict_legend(c),
                    .spare = {"base ms", "cand. ms"}};
  document.sections.push_back({.title = "Verdict",
                               .lines = as_list(verdict_sentences(c, demands)),
                               .id = "reasons",
                               .screen_lines = 8});
  for (const Phase phase : kPhases) {
    document.sections.push_back({.title = std::string(phase_name(phase)),
                                 .figures = {fmt::format("{}-compared", phase_name(phase))},
                                 .id = std::string(phase_name(phase))});
  }
  for (ReportSection& section : sections_of(c)) {
    section.id = fmt::format("part-{}", document.sections.size());
    document.sections.push_back(std::move(section));
  }
  return document;
}

std::string render_comparison(const Comparison& c, OutputFormat format,
                              const CompareDemands& demands, bool full, size_t columns) {
  if (format != OutputFormat::kTable || !full) {
    return render_document(
        {[&] { return comparison_document(c, demands); }, [&] { return flat_cells(c); },
         [&] { return comparison_json(c, demands); }},
        format, columns);
  }
  const Document document = comparison_document(c, demands);
  std::vector<ReportSection> sections = {
      {.title = "Verdicts", .lines = {document.legend}, .tables = {document.verdicts}}};
  sections.insert(sections.end(), document.sections.begin(), document.sections.end());
  std::string top;
  for (const std::string& line : document.outcome)
    top += join(screen_lines(line, 2, 3, columns), "\n") + "\n";
  return top + "\n" + render_text(sections);
}

std::string render_self_test(const SelfTest& test, const CompareOptions& options,
                             OutputFormat format) {
  if (format == OutputFormat::kJson) return to_json_text(self_test_to_json(test, options));
  Table table{.columns = columns_of("<claim|splits|count|rate|95% interval")};
  const auto add = [&](std::string claim, int64_t count,
                       const std::optional<stats::Interval>& bounds) {
    TableCell interval = TableCell::absent();
    if (bounds) {
      interval = {Json::array({bounds->low, bounds->high}),
                  fmt::format("[{:.2f}, {:.2f}] %", bounds->low * 100, bounds->high * 100)};
    }
    table.rows.push_back(
        {std::move(claim), test.splits, count,
         percent_cell(static_cast<double>(count) / static_cast<double>(test.splits)),
         std::move(interval)});
  };
  add(fmt::format("false alarm: some cell slower by more than {:.3g} %", options.margin * 100),
      test.alarms, test.alarm_interval);
  add("some cell faster or slower at all", test.differences, test.difference_interval);
  if (format == OutputFormat::kCsv) return table.render(format);
  ReportSection section{"Self-test", {}, {std::move(table)}};
  section.lines.push_back(fmt::format(
      "The {} processes of this bundle are split into two halves {}, and the halves are compared "
      "as two bundles. Nothing differs between them, so at most {:.0f} % of the splits may claim a "
      "difference. Differences between two runs are not covered.",
      test.processes, test.every_split ? "in every possible way" : "at random",
      options.alpha * 100));
  if (test.minimum_detectable) {
    section.lines.push_back(fmt::format(
        "Half of the processes can show a difference of {} or more (median cell, {:.0f} "
        "% power, without Holm's adjustment).",
        detectable_cell(test.minimum_detectable).text, options.power * 100));
  }
  if (format == OutputFormat::kMarkdown)
    return render_markdown("assay compare: self-test", {section});
  return render_text({section});
}

}  // namespace assay
