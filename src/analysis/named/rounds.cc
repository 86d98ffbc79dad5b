// Finds drifts and changes of level from round to round of worker processes.
#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/named/in_order.h"
#include "analysis/named/named.h"
#include "base/text/counts.h"
#include "stats/hypotheses/tests.h"
#include "stats/samples/summary.h"

namespace assay {
namespace {

constexpr size_t kLeastRounds = 4;
constexpr size_t kLeastOfLevel = 2;    // rounds: one slow round is no level
constexpr double kTrimmedCells = 0.2;  // a cell's process beside a busy neighbour

std::vector<double> levels_of(const std::vector<RowsInOrder>& processes) {
  std::vector<double> logs;
  for (const RowsInOrder& rows : processes) {
    logs.push_back(std::log(*stats::median(stats::sorted(latencies_ms(rows)))));
  }
  const double mean = *stats::mean(logs);
  for (double& log : logs) log -= mean;
  return logs;
}

// A pattern of the rounds' levels.
struct RoundPattern {
  double change = 0;   // of the logarithm: from the first round to the last, or between two levels
  size_t from = 0;     // the first round of the new level; of a drift 0
  double p = 1;        // by t, adjusted
  double squares = 0;  // that it leaves unexplained
};

// A straight line by least squares.
RoundPattern line_through(std::span<const double> logs) {
  const auto n = static_cast<double>(logs.size());
  const double mean = *stats::mean(logs);
  double of_x = 0;
  double of_xy = 0;
  double of_y = 0;
  for (size_t i = 0; i < logs.size(); ++i) {
    const double x = static_cast<double>(i) - (n - 1) / 2;
    of_x += x * x;
    of_xy += x * (logs[i] - mean);
    of_y += (logs[i] - mean) * (logs[i] - mean);
  }
  const double slope = of_xy / of_x;
  RoundPattern line{.change = slope * (n - 1), .squares = std::max(0.0, of_y - slope * of_xy)};
  const auto test = stats::t_test(slope, {std::sqrt(line.squares / (n - 2) / of_x), n - 2});
  if (test) line.p = test->p;
  return line;
}

// Two levels that Student's t tells apart best; Bonferroni over the places where they may meet.
RoundPattern step_in(std::span<const double> logs) {
  RoundPattern best;
  double places = 0;
  for (size_t at = kLeastOfLevel; at + kLeastOfLevel <= logs.size(); ++at) {
    const auto before = stats::moments(logs.first(at));
    const auto after = stats::moments(logs.subspan(at));
    if (!before || !after) continue;
    ++places;
    const double squares = before->variance * static_cast<double>(before->n - 1) +
                           after->variance * static_cast<double>(after->n - 1);
    const auto test = stats::student_t(*after, *before);
    if (places > 1 && squares >= best.squares) continue;
    best = {after->mean - before->mean, at, test ? test->p : 1, squares};
  }
  best.p = std::min(1.0, best.p * places);
  return best;
}

void report_pattern(const RoundLevels& rounds, const RoundPattern& pattern, Phase phase,
                    std::vector<Finding>& findings) {
  const bool steps = pattern.from > 0;
  Finding finding = about_phase(steps ? "level_change" : "drift", Severity::kWarning, phase);
  const double share = std::expm1(pattern.change);
  finding.size = std::abs(share);
  const std::string where =
      steps ? fmt::format("changes by {:+.1f} % from round {} of {} rounds of worker processes on",
                          share * 100, pattern.from + 1, rounds.logs.size())
            : fmt::format(
                  "drifts by {:+.1f} % from the first to the last of {} rounds of worker processes",
                  share * 100, rounds.logs.size());
  finding.text =
      fmt::format("latency {}, over {} (t over the rounds' levels, p = {})", where,
                  counted(rounds.cells.size(), "cell"), format_significant(pattern.p, 2));
  for (const auto& cell : rounds.cells) {
    for (size_t round = pattern.from; round < cell.size(); ++round) {
      add_rows(finding, cell[round]);
    }
  }
  findings.push_back(std::move(finding));
}

}  // namespace

std::optional<RoundLevels> round_levels(const Samples& samples, Phase phase) {
  std::map<size_t, std::vector<std::vector<RowsInOrder>>> by_count;
  for (const Group& group : samples.groups) {
    if (samples.strata[group.stratum].phase != phase) continue;
    std::vector<RowsInOrder> processes = by_process(uncompiled(group));
    if (processes.size() >= kLeastRounds) by_count[processes.size()].push_back(processes);
  }
  if (by_count.empty()) return std::nullopt;
  RoundLevels rounds;
  rounds.cells = std::ranges::max_element(by_count, {}, [](const auto& entry) {
                   return entry.second.size();
                 })->second;
  std::vector<std::vector<double>> levels;
  for (const auto& cell : rounds.cells) levels.push_back(levels_of(cell));
  for (size_t round = 0; round < levels.front().size(); ++round) {
    std::vector<double> of_cells;
    for (const std::vector<double>& cell : levels) of_cells.push_back(cell[round]);
    rounds.logs.push_back(*stats::trimmed_mean(stats::sorted(of_cells), kTrimmedCells));
  }
  return rounds;
}

void find_changes_between_rounds(const Samples& samples, const AnalysisOptions& options,
                                 std::vector<Finding>& findings) {
  for (const Phase phase : kPhases) {
    const auto rounds = round_levels(samples, phase);
    if (!rounds) continue;
    RoundPattern line = line_through(rounds->logs);
    RoundPattern step = step_in(rounds->logs);
    for (RoundPattern* pattern : {&line, &step}) pattern->p = std::min(1.0, 2 * pattern->p);
    // Half of alpha is that of single cells.
    if (std::min(line.p, step.p) >= options.alpha / 2) continue;
    const RoundPattern& pattern = step.squares < line.squares ? step : line;
    if (std::abs(std::expm1(pattern.change)) < options.notable) continue;
    report_pattern(*rounds, pattern, phase, findings);
  }
}

}  // namespace assay
