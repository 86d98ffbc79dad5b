// Two arms beside each other: figures, tests and verdict; and arms that can't be contrasted.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "artifact/row.h"
#include "stats/hypotheses/tests.h"
#include "stats/samples/intervals.h"
#include "stats/sequential/widening.h"

namespace assay {

enum class Verdict { kFaster, kSlower, kEquivalent, kInconclusive };
inline constexpr std::array kVerdicts = {Verdict::kFaster, Verdict::kSlower, Verdict::kEquivalent,
                                         Verdict::kInconclusive};
std::string_view verdict_name(Verdict verdict);

// Observation of a contrast.
enum class ContrastUnit {
  kRows,         // each arm's rows by themselves
  kRepetitions,  // the rows of one repetition, which arms ran beside one another
  kProcesses,    // all rows of a worker process
};
std::string_view contrast_unit_name(ContrastUnit unit);

// Two or three worker processes leave a t interval one or two degrees of freedom: it says how few
// there were, and nothing of the arms. The range of the processes' own figures stands in its place,
// and a verdict needs that range beside the test (contrast/process_range.h).
inline constexpr int64_t kLeastProcessesOfInterval = 4;

// No two processes of one arm were ever seen to differ by as much: a ratio beyond it is decided
// however few processes ran. Measured were 2.01 (torch, a tiny model on an H100) and 1.60 (native,
// two cores with neighbours); docs/statistics.md, "Units and pairs".
inline constexpr double kMostBetweenProcesses = 2.5;

// A ratio of two arms' figures, and how sure it is.
struct SpreadRatio {
  double ratio = 1;
  std::optional<stats::Interval> interval;  // absent: of fewer processes than an interval needs
  // Least and largest of those processes' ratios; absent too where strata are combined.
  std::optional<stats::Interval> process_range = {};
};

// An arm against the baseline, on one stratum or combined over those of a phase.
struct Contrast {
  Phase phase = Phase::kPrefill;
  std::optional<size_t> stratum;  // absent: combined
  int64_t strata = 1;
  // Combined: further strata of the phase on which both arms were measured, and one of them lost
  // rows or gave other output. The remaining rows describe the survivors: no verdict.
  int64_t lost_strata = 0;
  std::string arm;
  std::string baseline;
  int64_t n_arm = 0;  // rows
  int64_t n_baseline = 0;
  ContrastUnit unit = ContrastUnit::kRows;
  // Both arms' units were taken together, in whole blocks (blocks.h): the error is that of their
  // ratio within units. Else the arms know nothing of each other, and tests are Welch's. Combined:
  // so in every stratum.
  bool paired = false;
  int64_t units_arm = 0;  // combined: the least of its strata
  int64_t units_baseline = 0;
  // The stratum was looked at while it ran: ratio is the geometric mean of the rounds' ratios, its
  // interval and verdict hold at any look, and there are no tests (contrast/any_look.h).
  bool any_look = false;
  int64_t left_out = 0;  // repetitions that only one arm has a warm row of: they leave the pair
  // An arm ran in a single process: nothing here shows what differs between processes of one
  // program, so that only a ratio beyond kMostBetweenProcesses is decided, unless the options allow
  // it.
  bool one_process = false;
  // Degrees of freedom of the spread between processes, where all strata of the phase tell more of
  // it than this one's own do (contrast/shared_processes.h).
  std::optional<double> shared_df = {};
  // Widening of the standard errors below and their degrees of freedom, against those of
  // independent rows (dependence.h). Combined: the widening of its error by all strata's.
  stats::Widening widening;
  double ratio = 1;                               // arm / baseline, of means; below 1 is faster
  std::optional<stats::Interval> ratio_interval;  // stats::calibrated_ratio_interval()
  // Range of the ratios, present if processes are the unit and an arm has fewer than
  // kLeastProcessesOfInterval whose spread other strata don't tell: the least and the largest ratio
  // of a round of processes, or of unpaired arms of two processes. There is no ratio_interval then,
  // nor any other interval of this contrast.
  std::optional<stats::Interval> ratio_process_range = {};
  // Slow calls of one arm, `slow_arm`, that only the phase's other strata show: its mean may be so
  // many times what its rows here show, and the interval's end on its side is moved by that factor
  // (contrast/unseen_tails.h). 1: no such thing.
  double unseen_slow_factor = 1;
  std::string slow_arm;
  std::optional<double> median_ratio;
  // The ratio of typical calls, which a few slow ones don't touch; of pairs: contrast/typical.h.
  std::optional<SpreadRatio> typical;
  std::optional<double> difference_ms;  // of one stratum, as all the figures in milliseconds
  std::optional<stats::Interval> difference_interval_ms;            // of t
  std::optional<stats::Interval> difference_process_range_ms = {};  // as ratio_process_range
  // t of the difference; of samples that are apart, and combined: of the log ratio
  // (stats::log_scale())
  std::optional<stats::TestResult> test;
  std::optional<double> p_holm;
  // Effect sizes of single rows, as description: no test and no verdict rests on them.
  std::optional<double> cohen_d;
  std::optional<double> hedges_g;
  std::optional<double> mann_whitney_u;
  std::optional<double> vargha_delaney_a;
  std::optional<stats::TestResult> tost;
  std::optional<double> tost_p_holm;
  std::optional<double> minimum_detectable;     // as a share of the baseline's mean
  Verdict verdict = Verdict::kInconclusive;     // says nothing where there are lost strata
  std::map<Verdict, int64_t> stratum_verdicts;  // of a combined contrast
};

// Tests that are adjusted together, by Holm.
struct TestFamily {
  std::string name;
  double alpha = 0.05;  // of the family as a whole
  int64_t members = 0;
};

struct NotComparable {
  size_t stratum = 0;
  std::string arm;
  std::vector<std::string> reasons;
};

}  // namespace assay
