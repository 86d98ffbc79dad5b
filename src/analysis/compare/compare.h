// Two bundles of one study against each other, arm by arm: CI's question about a change.
//
// Unlike a contrast of two arms of one run, the two sides ran at different times, so that nothing
// that drifts or that neighbouring repetitions share cancels; and two processes of one program
// differ by more than their rows tell. So a cell is judged by its processes: series_means() of
// their means. docs/comparing.md has the rules, docs/calibration.md their error rates.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "analysis/compare/identity_axes.h"
#include "analysis/compare/machine_share.h"
#include "analysis/contrast/serial.h"
#include "analysis/findings/contrast.h"
#include "analysis/findings/strata.h"
#include "analysis/rows/losses.h"
#include "analysis/rows/machine_load.h"
#include "analysis/rows/processes.h"
#include "analysis/rows/samples.h"

namespace assay {

inline constexpr int kComparisonSchemaVersion = 5;

struct CompareOptions {
  double margin = 0.02;  // a regression is slower by more than this; equivalent is within it
  double alpha = 0.05;   // of each declared family
  double power = 0.8;
  int64_t minimum_rows = 5;
  bool allow_single_process = false;  // judge cells of one process a side by their rows
  bool machine_off = true;  // for cells judged by processes, by yardsticks (machine_share.h)
};

// One bundle's rows of a cell.
struct ComparedSide {
  int64_t processes = 0;
  // Mean of the processes' figures where those are judged, less the machine's part; else of the
  // rows.
  double mean_ms = 0;
  std::optional<double> noise;          // sd / mean of the rows
  std::optional<double> process_noise;  // sd / mean of the processes' figures; absent: one process
  ProcessFigures figures;               // one a process; typical calls as stats::TrimmedSeries
  double freedom = 1;                   // of the series' degrees: TrimmedSeries
  std::optional<SeriesMean> series;     // judged series; absent: none is
};

// Status of a cell without a verdict: its ratio is all that is known.
inline constexpr std::string_view kNotDecidedReason =
    "not decided: one process a side can't show what differs between processes";

// A cell by the medians of its processes' rows in the place of their means, a fifth of the
// processes cut at each end: a few calls that were stopped for long, or a few processes beside a
// busy neighbour, decide a mean and hide a change of all the others.
struct TypicalCall {
  double ratio = 1;
  std::optional<MachineShare> machine;  // taken off the ratio; absent: nothing was
  std::optional<stats::Interval> ratio_interval;
  std::optional<stats::Interval> ratio_range = {};  // as the cell's
  std::optional<stats::TestResult> test;
  std::optional<double> p_holm;
  std::optional<stats::TestResult> regression_test;  // as the cell's
  std::optional<double> regression_p_holm;
  bool regression = false;
};

// One cell (an arm on a stratum), or an arm combined over the strata of a phase.
struct ComparedCell {
  Phase phase = Phase::kPrefill;
  std::optional<size_t> stratum;  // absent: combined
  int64_t strata = 1;
  std::string arm;
  std::optional<ComparedSide> base;  // of one stratum
  std::optional<ComparedSide> cand;
  int64_t n_base = 0;  // warm ok rows
  int64_t n_cand = 0;
  double ratio = 1;                     // cand / base, of means; combined: geometric mean
  std::optional<MachineShare> machine;  // taken off the ratio; absent: nothing was
  bool by_processes = false;  // both sides have several; else by rows, where that is allowed
  std::optional<stats::StandardError> error;  // of ln(ratio)
  std::optional<double> difference_ms;
  std::optional<stats::Interval> ratio_interval;  // of t on the logarithm
  // A side has fewer processes than an interval needs, or there are fewer pairs of processes or
  // runs (kLeastProcessesOfInterval): least and largest ratio of theirs stand in the interval's
  // place, and have to bear the verdict out. Absent: combined strata have different processes.
  bool too_few = false;
  std::optional<stats::Interval> ratio_range = {};
  std::optional<stats::TestResult> test;
  std::optional<double> p_holm;
  // Factor on the ratio where the rows that the candidate lost beyond the base's share had been as
  // fast and as slow as what it kept (crashes.h). Absent: it lost no larger share. The ratio times
  // its high end is what the test that fails a build is about: losing rows never helps.
  std::optional<stats::Interval> lost_factor = {};
  // Error of ln(ratio) for the test that fails a build: with the spread between runs, as far as the
  // other cells show it.
  std::optional<stats::StandardError> alarm_error;
  // That test, one-sided: of a ratio (with what was lost) of 1 + margin at most.
  std::optional<stats::TestResult> regression_test;
  std::optional<double> regression_p_holm;
  std::optional<stats::TestResult> tost;
  std::optional<double> tost_p_holm;
  // Standard deviation of ln of the cell's time between runs of the history; absent: the history
  // doesn't show it.
  std::optional<double> between_runs;
  std::optional<double> minimum_detectable;  // as a share
  std::optional<Verdict> verdict;            // absent: not decided, kNotDecidedReason says why
  // True if regression_test shows more than the margin of a cell that is slower, or may be by what
  // it lost. Cells judged by processes have two alarms, of means and of typical calls, each at half
  // of alpha.
  bool regression = false;
  std::optional<TypicalCall> typical;  // of cells judged by processes

  bool alarm() const { return regression || (typical && typical->regression); }
};

// Rows lost by one arm, in a phase or on a stratum.
struct ComparedCrashes {
  Phase phase = Phase::kPrefill;
  std::optional<size_t> stratum;
  std::string arm;
  Losses base = {};
  Losses cand = {};
  std::optional<stats::Interval> base_interval = {};  // Losses::interval()
  std::optional<stats::Interval> cand_interval = {};
  bool by_processes = false;     // some died, and p is of their number; else of rows
  std::optional<double> p = {};  // one-sided: the candidate loses more
  std::optional<double> p_holm = {};
  bool rise = false;
};

struct CellReason {
  size_t stratum = 0;
  std::string arm;
  std::string reason;
};

struct Comparison {
  CompareOptions options;
  std::string base_name;
  std::string cand_name;
  std::vector<AxisDifference> varied;  // identities differ here, as --vary said they may
  std::vector<std::string> unstated;   // axes that one of the two names as unknown, each once
  std::vector<Stratum> strata;         // the base's, then those that only the candidate has
  std::vector<ComparedCrashes> crashes;
  std::vector<ComparedCell> combined;
  std::vector<ComparedCell> cells;
  std::vector<CellReason> not_comparable;
  std::vector<CellReason> missing;  // in the candidate
  std::vector<CellReason> lost;     // by the candidate: it kept too few rows to be compared
  std::vector<CellReason> added;    // by the candidate
  std::vector<CellReason> broken;   // parity held in the base, and fails in the candidate
  std::vector<CellReason> notes;    // an arm that ran compiled and no longer does, ...
  std::vector<TestFamily> families;
  // Standard deviation of ln(ratio) between cells, beyond the errors that their processes show.
  // Absent: none of the cells' arms has two strata in a phase.
  std::optional<double> between_cells;
  // The runs that are judged: of several a side the run is the unit (runs.h).
  int64_t base_runs = 1;
  int64_t cand_runs = 1;
  bool in_one_run = false;   // both sides are of one bundle, their repetitions pairs (sides.h)
  int64_t history_runs = 0;  // whose spread an alarm has to beat (history.h); 0: no history
  MachineLoad base_load;
  MachineLoad cand_load;
  std::vector<std::string> load_differences;
  std::string caveat;  // of a comparison of other tools' files (other_tools.h)

  // Cells without a verdict.
  int64_t undecided() const;
  // One sentence for each thing that CI must see: missing cells always; with `on_regression` also
  // regressions, crash rates that rose, and output that broke.
  std::vector<std::string> failures(bool on_regression) const;
};

// Axes on which two bundles' identities differ; bad_input if there is one that `vary` doesn't name.
Result<std::vector<AxisDifference>> varied_axes(const Bundle& base, const Bundle& cand,
                                                const std::set<std::string>& vary);
// bad_input if the sides have no cell in common.
Status check_common_cells(const Comparison& comparison);

// A comparison's cells by one figure of their processes, and those of an arm and phase together.
struct ComparedCells {
  std::vector<ComparedCell> combined;
  std::vector<ComparedCell> cells;
};
// Gives them the test that an alarm has to pass.
using AlarmTests = std::function<void(ProcessFigure figure, const std::vector<Stratum>& strata,
                                      ComparedCells& cells)>;

// bad_input where identities differ on an axis that `vary` doesn't name, or the bundles have no
// stratum in common; the error of a parity record without a verdict. `alarm_tests`: other ones than
// the spread of the comparison's own cells.
Result<Comparison> compare(const Bundle& base, const Bundle& cand, const CompareOptions& options,
                           const std::set<std::string>& vary, const AlarmTests& alarm_tests = {});

// The same of rows that are already grouped, without a look at identities. `same_prompts`: cells
// that answered different prompts aren't comparable.
Comparison compare_samples(const Samples& base, const Samples& cand, const CompareOptions& options,
                           bool same_prompts = true, const AlarmTests& alarm_tests = {});

Json comparison_to_json(const Comparison& comparison);

// "kv_decode, llama, 10 tokens, 64 new tokens, batch 2".
std::string stratum_text(const Stratum& stratum);

}  // namespace assay
