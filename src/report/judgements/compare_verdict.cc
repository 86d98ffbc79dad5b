// A comparison's sentences. None says more than the tables above it.
#include "report/judgements/compare_verdict.h"

#include <algorithm>
#include <map>

#include "analysis/compare/history.h"
#include "base/add_once.h"
#include "base/records/enum_words.h"
#include "base/text/text.h"
#include "report/answers.h"
#include "report/judgements/compare_cells.h"

namespace assay {
namespace {

constexpr size_t kMostNamed = 5;

std::vector<const ComparedCell*> figures(const Comparison& c) {
  std::vector<const ComparedCell*> all;
  for (const ComparedCell& cell : c.combined) all.push_back(&cell);
  for (const ComparedCell& cell : c.cells) all.push_back(&cell);
  return all;
}

// "eager on prefill, tiny, 10 tokens: +7.29 % [+4.62, +10.03]".
std::string figure_text(const Comparison& c, const ComparedCell& cell) {
  std::string text =
      fmt::format("{} on {}: {} %", cell.arm,
                  cell.stratum ? stratum_text(c.strata[*cell.stratum])
                               : fmt::format("{}, all strata", phase_name(cell.phase)),
                  signed_percent_text(cell.ratio - 1));
  const std::string spread = share_spread_text(cell.ratio_interval, cell.ratio_range);
  return spread.empty() ? text : text + " " + spread;
}

std::string figures_text(const Comparison& c, const std::vector<const ComparedCell*>& cells) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < std::min(cells.size(), kMostNamed); ++i) {
    parts.push_back(figure_text(c, *cells[i]));
  }
  if (cells.size() > kMostNamed) {
    parts.push_back(fmt::format("and {} more", cells.size() - kMostNamed));
  }
  return join(parts, "; ");
}

std::string counts_line(const Comparison& c) {
  std::map<Verdict, int> counts;
  for (const ComparedCell& cell : c.cells) {
    if (cell.verdict) ++counts[*cell.verdict];
  }
  std::vector<std::string> parts;
  for (const Verdict verdict : kVerdicts) {
    if (counts[verdict] > 0) {
      parts.push_back(fmt::format("{} {}", counts[verdict], verdict_name(verdict)));
    }
  }
  if (c.undecided() > 0) parts.push_back(fmt::format("{} not decided", c.undecided()));
  return fmt::format("{} compared{}{}.", counted(std::ssize(c.cells), "cell"),
                     parts.empty() ? "" : ": ", join(parts, ", "));
}

// Adds how many cells weren't judged, or by the rows of one process a side.
void add_basis(const Comparison& c, std::vector<std::string>& lines) {
  if (c.undecided() > 0 && c.caveat.empty()) {
    lines.push_back(
        fmt::format("{} of {} {} (the study's key `processes` gives them several; "
                    "--allow-single-process judges them by their rows).",
                    c.undecided(), counted(std::ssize(c.cells), "cell"), kNotDecidedReason));
  }
  const auto by_rows = std::ranges::count_if(
      c.cells, [](const ComparedCell& cell) { return cell.verdict && !cell.by_processes; });
  if (by_rows > 0) {
    lines.push_back(
        fmt::format("{} of {} {} judged by the rows of one process a side{}. Two processes of one "
                    "program may differ by more than their rows show, so a difference "
                    "may come from the process and not from the program.",
                    by_rows, counted(std::ssize(c.cells), "cell"), by_rows == 1 ? "is" : "are",
                    c.caveat.empty() ? " (--allow-single-process)" : ""));
  }
}

// Adds a line if some processes or runs are so few that they have ranges.
void add_few(const Comparison& c, std::vector<std::string>& lines) {
  const auto few = std::ranges::count_if(
      c.cells, [](const ComparedCell& cell) { return cell.verdict && cell.too_few; });
  if (few == 0) return;
  const std::string_view unit = c.base_runs + c.cand_runs > 2 ? "runs"
                                : c.in_one_run                ? "pairs of processes"
                                                              : "processes on a side";
  lines.push_back(fmt::format(
      "{} of {} {} fewer than {} {}, too few for an interval. \"range\" is from the least to the "
      "largest ratio of theirs, and a verdict needs all of it beside the test.",
      few, counted(std::ssize(c.cells), "cell"), few == 1 ? "has" : "have",
      kLeastProcessesOfInterval, unit));
}

// The sentence on differences from run to run: turns call by call, several runs or a history cover
// them, and two bundles show only a part.
std::string between_runs_line(const Comparison& c) {
  if (c.in_one_run) {
    return "Both programs ran at the same time and took turns call by call, so a change of the "
           "machine's speed meets both. Two builds of the same source may differ because their "
           "code lies at other addresses.";
  }
  if (c.base_runs + c.cand_runs > 2) {
    const bool one = c.base_runs == 1 || c.cand_runs == 1;
    return fmt::format(
        "The unit is the run: {} of the base, {} of the candidate. The rows of all processes of a "
        "run are one figure a cell.{}",
        c.base_runs, c.cand_runs,
        one ? " The side with one run is assumed to vary as the other side's runs do." : "");
  }
  if (c.history_runs > 0) {
    std::optional<double> least;
    double most = 0;
    for (const ComparedCell& cell : c.cells) {
      if (!cell.between_runs) continue;
      least = std::min(least.value_or(*cell.between_runs), *cell.between_runs);
      most = std::max(most, *cell.between_runs);
    }
    if (least) {
      return fmt::format(
          "In the history of {} runs a cell differs from run to run by {:.1f} to {:.1f} % more "
          "than its processes do (standard deviation). An alarm has to exceed that.",
          c.history_runs, *least * 100, most * 100);
    }
  }
  const std::string between =
      !c.between_cells ? "No arm has two strata of a phase, so nothing shows how much a cell "
                         "differs from run to run. "
      : *c.between_cells > 0
          ? fmt::format(
                "Cells differ from run to run by {:.1f} % more than their processes do (standard "
                "deviation). An alarm has to exceed that. ",
                *c.between_cells * 100)
          : "Cells differ from run to run by no more than their processes do. ";
  return between +
         "Two bundles can't show a shift that all cells of a run share (another day, another "
         "neighbour).";
}

// Adds how far ratios were corrected for the machine's speed.
void add_machine(const Comparison& c, std::vector<std::string>& lines) {
  int64_t adjusted = 0;
  double least = 0;
  double most = 0;
  for (const ComparedCell& cell : c.cells) {
    if (!cell.machine) continue;
    const double slower = cell.machine->ratio - 1;
    least = adjusted == 0 ? slower : std::min(least, slower);
    most = adjusted == 0 ? slower : std::max(most, slower);
    ++adjusted;
  }
  if (adjusted == 0) return;
  lines.push_back(fmt::format(
      "Fixed work timed beside each call shows that the machine changed the candidate's times by "
      "{} to {} %. The {} of {} of {} {} corrected for this (--unadjusted leaves them "
      "as measured).",
      signed_percent_text(least), signed_percent_text(most), adjusted == 1 ? "ratio" : "ratios",
      adjusted, counted(std::ssize(c.cells), "cell"), adjusted == 1 ? "is" : "are"));
}

void add_unseen(const Comparison& c, std::vector<std::string>& lines) {
  const bool any = std::ranges::any_of(c.cells, [](const auto& cell) { return cell.by_processes; });
  if (any) lines.push_back(between_runs_line(c));
  if (c.history_runs > 0 && c.history_runs < kLeastHistory) {
    lines.push_back(fmt::format(
        "The history has {} and needs {} to show a spread between runs, so alarms were judged "
        "without it.",
        counted(c.history_runs, "run"), kLeastHistory));
  }
  if (!c.load_differences.empty()) {
    lines.push_back(
        fmt::format("The machine was not equally busy: {}. That may cause a difference.",
                    join(c.load_differences, "; ")));
  }
}

// The last line of a comparison in which nothing is missing, rose, broke or regressed.
std::string closing_line(const Comparison& c) {
  const std::string sound = "No cell is missing or lost, no crash rate rose, no output broke";
  const auto all = figures(c);
  const double margin = c.options.margin;
  if (std::ranges::none_of(all, [](const auto* cell) { return cell->verdict.has_value(); })) {
    return "No cell was judged: nothing here says that the candidate is as fast as the base.";
  }
  std::vector<const ComparedCell*> slower;
  const ComparedCell* widest = nullptr;
  for (const ComparedCell* cell : all) {
    if (cell->verdict == Verdict::kSlower && cell->ratio > 1 + margin) slower.push_back(cell);
    if (cell->verdict && cell->ratio_interval &&
        (widest == nullptr || cell->ratio_interval->high > widest->ratio_interval->high)) {
      widest = cell;
    }
  }
  if (!slower.empty()) {
    return fmt::format(
        "{}, and there is no alarm, but these are slower, by more than {:.3g} % in what was "
        "measured: {}.{}",
        sound, margin * 100, figures_text(c, slower),
        c.in_one_run ? " The alarm's test is stricter."
                     : " Two runs of one program may differ by as much.");
  }
  std::string text =
      fmt::format("{}, no cell is shown to be slower by more than {:.3g} %.", sound, margin * 100);
  if (widest != nullptr && widest->ratio_interval->high > 1 + margin) {
    text += fmt::format(" Intervals allow for up to {} % ({} on {}).",
                        signed_percent_text(widest->ratio_interval->high - 1), widest->arm,
                        widest->stratum ? stratum_text(c.strata[*widest->stratum])
                                        : fmt::format("{}, all strata", phase_name(widest->phase)));
  }
  return text;
}

// "slower, 1.10 [1.06, 1.14]"; of cells with several verdicts "2 slower, 1 inconclusive, 0.98 to
// 1.10 [0.95, 1.14]"; empty: no cell of the phase has a ratio.
std::string phase_text(const Comparison& c, Phase phase) {
  std::map<std::string, int> counts;
  RatioRange range;
  stats::Interval ratios = {};
  for (const ComparedCell& cell : c.cells) {
    if (cell.phase != phase) continue;
    if (counts.empty()) ratios = {cell.ratio, cell.ratio};
    ratios = {std::min(ratios.low, cell.ratio), std::max(ratios.high, cell.ratio)};
    ++counts[std::string(cell.verdict ? verdict_name(*cell.verdict) : "not decided")];
    range.add(cell.ratio, cell.ratio_interval, cell.ratio_range);
  }
  if (counts.empty()) return "";
  range.values = ratios;
  std::vector<std::string> words;
  for (const auto& [word, count] : counts) {
    words.push_back(counts.size() == 1 ? word : fmt::format("{} {}", count, word));
  }
  return fmt::format("{}, {}", join(words, ", "), range.text());
}

// "prefill slower, 1.10 [1.06, 1.14] of the base's time; kv_decode ...".
std::string phases_line(const Comparison& c) {
  if (c.in_one_run) return "";  // the first rows of its verdicts
  std::vector<std::string> parts;
  for (const Phase phase : kPhases) {
    const std::string text = phase_text(c, phase);
    if (text.empty()) continue;
    const std::string_view of_base = parts.empty() ? " of the base's time" : "";
    parts.push_back(fmt::format("{} {}{}", phase_name(phase), text, of_base));
  }
  return parts.empty() ? "" : join(parts, "; ") + ".";
}

}  // namespace

std::string signed_percent_text(double share) {
  return share < 10 ? fmt::format("{:+.2f}", share * 100) : ">+999";
}

std::string verdict_word(const Comparison& c, const CompareDemands& demands) {
  return std::string(word_of(compare_outcome(c, demands), {"passes", "NOTHING JUDGED", "FAILS"}));
}

std::vector<std::string> verdict_top(const Comparison& c, const CompareDemands& demands) {
  std::vector<std::string> lines = {verdict_headline(c, demands)};
  for (const std::string& line : {phases_line(c), c.caveat}) {
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

std::string verdict_headline(const Comparison& c, const CompareDemands& demands) {
  const std::string word = verdict_word(c, demands);
  const std::vector<std::string> unmet = unmet_demands(c, demands);
  const std::vector<std::string> all = unmet.empty() ? c.failures(true) : unmet;
  if (all.empty()) return fmt::format("{}: {}", word, closing_line(c));
  const std::string more =
      all.size() > 1 ? fmt::format(", and {} more", all.size() - 1) : std::string();
  return fmt::format("{}: {}{}{}", word, unmet.empty() ? "nothing is demanded, but " : "",
                     all.front(), more);
}

std::vector<std::string> verdict_sentences(const Comparison& c, const CompareDemands& demands) {
  std::vector<std::string> lines = {counts_line(c)};
  add_basis(c, lines);
  add_few(c, lines);
  add_machine(c, lines);
  add_unseen(c, lines);
  const auto failing = unmet_demands(c, demands);
  std::vector<std::string> all = failing;
  for (const std::string& failure : c.failures(true)) add_once(all, failure);
  for (const std::string& failure : all) {
    const bool fails = std::ranges::find(failing, failure) != failing.end();
    lines.push_back(fmt::format("{}: {}", fails ? "FAIL" : "warning", failure));
  }
  return lines;
}

}  // namespace assay
