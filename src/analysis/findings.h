// What a bundle says: everything that tables, reports and judgements are made of.
//
// Times are wall-clock milliseconds of warm ok rows (status ok, not cold) unless a name says
// otherwise. What can't be computed is absent. docs/statistics.md gives every estimator.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/reach.h"
#include "analysis/read_share.h"
#include "analysis/requirements.h"
#include "analysis/sittings.h"
#include "analysis/worker_facts.h"
#include "artifact/row.h"
#include "base/json.h"
#include "base/result.h"
#include "stats/anova.h"
#include "stats/intervals.h"
#include "stats/tests.h"

namespace assay {

inline constexpr int kFindingsSchemaVersion = 8;

// The choices that an analysis declares beforehand; findings carry them.
struct AnalysisOptions {
  double margin = 0.03;      // equivalence: ratio of means within 1/(1+margin) .. 1+margin
  double alpha = 0.05;       // family-wise, for each of the two claims (differs, equivalent)
  double confidence = 0.95;  // of intervals
  double power = 0.8;        // of the minimum detectable effect
  int64_t resamples = 10000;
  uint64_t seed = 42;
  int64_t minimum_rows = 5;  // warm ok rows that a contrast needs of each arm
  double cold_factor = 3;    // a first sample this many times the median of the rest is skew
  double notable = 0.01;     // drifts and disagreements below this share aren't findings
};

// Rows that differ by arm and repetition alone.
struct Stratum {
  Phase phase = Phase::kPrefill;
  std::string model;
  std::string scenario;
  int64_t new_tokens = 0;
  int64_t batch = 1;
  friend auto operator<=>(const Stratum&, const Stratum&) = default;
};

struct StudySummary {
  std::string name;
  std::string baseline;
  std::vector<std::string> arms;  // baseline first
  std::string order;              // sequential | shuffled | interleaved; empty: not recorded
  std::optional<int64_t> seed;
  std::optional<int64_t> warmup;
  std::optional<int64_t> repetitions;
  std::string started_at;
  bool complete = false;  // the run was sealed
  int64_t rows = 0;
};

// Rows attempted (warm-ups too: a crash there is a crash) and what became of them.
struct OutcomeCounts {
  Phase phase = Phase::kPrefill;
  std::optional<size_t> stratum;  // absent: the whole phase
  std::string arm;
  int64_t attempted = 0;
  int64_t failed = 0;                              // status other than ok
  std::optional<stats::Interval> failed_interval;  // Wilson, of the rate
  std::map<std::string, int64_t> by_status;        // other than ok
  std::map<std::string, int64_t> by_error_class;
};

// One arm on one stratum.
struct Latency {
  size_t stratum = 0;
  std::string arm;
  bool parity_failed = false;  // its output differs from the baseline's: never contrasted
  int64_t n = 0;
  std::optional<double> mean;
  std::optional<stats::Interval> mean_interval;  // stats::calibrated_mean_interval()
  std::optional<double> median;
  std::optional<double> sd;
  std::optional<double> mad;
  std::optional<double> trimmed_mean;  // 10 % cut from each end
  std::optional<double> min;
  std::optional<double> p90;
  std::optional<double> p95;
  std::optional<double> p99;
  std::optional<double> max;
  std::optional<double> tokens_per_s;  // harmonic mean: tokens over time
  // Over the warm rows whose energy is known: joules over tokens produced.
  std::optional<double> joules_per_token;
  int64_t energy_n = 0;  // those rows
  int64_t cold_n = 0;    // ok cold rows
  std::optional<double> cold_median;
  std::optional<double> cold_max;
  std::optional<double> mean_with_cold;
  std::optional<double> mean_without_first;  // of the warm rows but the first
  // Independent rows that would tell as much of the mean.
  std::optional<double> n_effective;
  double widening = 1;  // of the mean's standard error, against that of independent rows
};

enum class Verdict { kFaster, kSlower, kEquivalent, kInconclusive };
inline constexpr std::array kVerdicts = {Verdict::kFaster, Verdict::kSlower, Verdict::kEquivalent,
                                         Verdict::kInconclusive};
std::string_view verdict_name(Verdict verdict);

// An arm against the baseline, on one stratum or combined over those of a phase.
struct Contrast {
  Phase phase = Phase::kPrefill;
  std::optional<size_t> stratum;  // absent: combined
  int64_t strata = 1;
  // Combined: further strata of the phase on which both arms were measured, and one of them lost
  // rows or gave other output. What is left describes the survivors: no verdict.
  int64_t lost_strata = 0;
  std::string arm;
  std::string baseline;
  int64_t n_arm = 0;
  int64_t n_baseline = 0;
  // Of the standard errors below and their degrees of freedom, against those of independent rows
  // (dependence.h). Combined: what the strata's make of its error.
  stats::Widening widening;
  double ratio = 1;                               // arm / baseline, of means; below 1 is faster
  std::optional<stats::Interval> ratio_interval;  // stats::calibrated_ratio_interval()
  std::optional<double> median_ratio;
  std::optional<double> difference_ms;  // of one stratum, as all the figures in milliseconds
  std::optional<stats::Interval> difference_interval_ms;  // Welch
  // Welch's t; of samples that are apart, and combined: t of the log ratio (stats::log_scale())
  std::optional<stats::TestResult> test;
  std::optional<double> p_holm;
  std::optional<double> cohen_d;
  std::optional<double> hedges_g;
  std::optional<stats::RankTest> rank;
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

// Whether an arm earned the word "compiled" on one stratum, by its rows and its worker's evidence.
enum class Execution {
  kEager,      // it never asked for a compiler in this phase
  kCompiled,   // evidence that it ran compiled, and no timed row ran eager
  kPartly,     // some timed rows ran eager
  kFellBack,   // all of them did
  kOtherMode,  // compiled, and not as its mode promises: without CUDA graphs, say
  kLabelOnly,  // its worker says that no compiler was called
  kUnproven,   // nobody proved anything
};
std::string_view execution_name(Execution execution);

// The tail of one arm's warm rows on a stratum, and what compilation has to do with it. "High" is
// p99, and the largest sample where there are too few rows for that.
struct Tail {
  size_t stratum = 0;
  std::string arm;
  Execution execution = Execution::kEager;
  int64_t n = 0;
  double p50 = 0;
  double high = 0;
  bool high_is_max = false;
  int64_t slow = 0;             // rows above kSlowFactor times the median
  int64_t slow_recompiled = 0;  // ... that carry a compilation
  int64_t recompiled = 0;       // rows that carry one
  int64_t ran_eager = 0;        // rows of a compiled arm in which something fell back to eager
  std::optional<double> fence;  // Tukey's upper fence: third quartile + 1.5 interquartile ranges
  int64_t beyond_fence = 0;     // rows above it
  int64_t beyond_fence_recompiled = 0;            // ... that carry a compilation
  std::optional<double> high_without;             // high of the rows that carry none
  std::optional<double> p50_ratio;                // to the baseline's p50
  std::optional<stats::Interval> ratio_interval;  // percentile bootstrap
};

// A sample this many times its group's median is slow. A machine with other work on it doubles a
// sample now and then; a compilation multiplies it by tens.
inline constexpr double kSlowFactor = 3;

// An arm that a decision passes over.
struct LeftOut {
  std::string arm;
  std::string reason;
};

// The arm that is ahead by another figure than the mean.
struct Alternative {
  std::string figure;  // p50, p95, p99
  std::string arm;
  double ratio = 1;  // to that figure of the arm that the mean chose
  stats::Interval interval;
};

// An arm that a decision's leader was held against.
struct Rival {
  std::string arm;
  double ratio = 1;                               // leader / this arm, of means
  std::optional<stats::Interval> ratio_interval;  // as the contrast's
  std::optional<double> minimum_detectable;       // of the pair, as a share of this arm's mean
};

// Which arm a stratum's reader should take.
struct Decision {
  size_t stratum = 0;
  enum class Kind {
    kBest,          // `arm` is faster than every other comparable arm
    kNoDifference,  // `arm` has the lowest mean, and `tied` are equivalent to it
    kUndecided,     // `arm` has the lowest mean, and the data can't tell it from `tied`
    kOnlyOne,       // no other arm is comparable
    kNone,          // no arm is
    kVoid,          // the comparison that it would rest on is void: `void_because`
  } kind = Kind::kNone;
  std::string arm;  // empty: none is named
  std::string void_because;
  std::vector<Rival> tied;                // by their means; a beaten arm may lie before one
  std::optional<Rival> runner_up;         // next lowest mean
  std::vector<Alternative> alternatives;  // where p50 or the tail choose another arm
  std::vector<LeftOut> left_out;  // arms that aren't comparable, or didn't run as they are labelled
};
std::string_view decision_name(Decision::Kind kind);

enum class Severity { kWarning, kNote };

// A named finding and the rows that cause it.
struct Finding {
  std::string kind;  // cold_start_skew, drift, ...: docs/statistics.md lists them
  Severity severity = Severity::kNote;
  std::optional<Phase> phase;
  std::optional<size_t> stratum;
  std::string arm;  // empty: not about one arm
  std::string text;
  double size = 0;  // how bad, comparable within a kind: reports show the worst first
  std::map<std::string, std::vector<int64_t>> rows;  // repetitions by cell_id
};

// What an arm's prefill is worth if so many tokens are decoded after it.
struct SplitAt {
  int64_t new_tokens = 0;
  bool extrapolated = false;  // more than any that was measured
  double prefill_share = 0;   // the prefill's gain over the baseline's whole time
  std::optional<stats::Interval> prefill_share_interval;
  double ratio = 1;                               // of the whole times, arm / baseline
  std::optional<stats::Interval> ratio_interval;  // of lengths that were measured
};

// Prefill and decode of one arm put together, on one model, scenario and batch.
struct PhaseSplit {
  std::string model;
  std::string scenario;
  int64_t batch = 1;
  std::string arm;
  size_t prefill_stratum = 0;
  double gain_ms = 0;  // prefill of the baseline less that of the arm
  std::optional<stats::Interval> gain_interval;
  double token_ratio = 1;  // of the times a decoded token
  std::vector<SplitAt> at;
  // Where the prefill surely gains: the decode length from which on that is less than the margin of
  // the baseline's whole time; and, if the arm decodes slower, the length that uses the gain up.
  std::optional<double> stops_mattering;
  std::optional<Reach> stops_interval;
  std::optional<double> breaks_even;
  std::optional<Reach> even_interval;
};

// One arm against the baseline along model size, under one condition.
struct SizeRatio {
  std::string model;
  double size = 0;
  double ratio = 1;
  std::optional<stats::Interval> interval;
};
struct SizeCrossover {
  std::string arm;
  std::vector<SizeRatio> ratios;    // by size
  std::optional<double> crossover;  // the size at which the ratio crosses 1; absent: it doesn't
  std::optional<Reach> interval;
  int64_t crossings = 0;
};

// Arm by model under one phase, scenario, decode length and batch: ln(ms) of all arms and models
// that are comparable there.
struct SizeAnalysis {
  Phase phase = Phase::kPrefill;
  std::string scenario;
  int64_t new_tokens = 0;
  int64_t batch = 1;
  std::vector<std::string> arms;
  std::vector<std::string> models;
  std::optional<stats::TwoWayAnova> type2;
  std::optional<stats::TwoWayAnova> type3;
  std::optional<double> interaction_p_holm;  // of type II, over the conditions of a phase
  std::vector<SizeCrossover> crossovers;     // where sizes are known
};

// Prompt tokens of a stratum's rows.
struct PromptRange {
  int64_t shortest = 0;
  int64_t longest = 0;
};

struct Findings {
  AnalysisOptions options;
  std::vector<std::pair<std::string, std::string>> identity;  // flattened, in the bundle's order
  StudySummary study;
  std::vector<SittingSummary> sittings;
  std::optional<Requirements> requirements;  // absent: the study has none
  std::vector<Stratum> strata;               // by phase, model, prompt length
  std::vector<PromptRange> prompts;          // of each stratum
  std::vector<TestFamily> families;
  std::vector<OutcomeCounts> outcomes;
  std::vector<Latency> latencies;
  std::vector<Tail> tails;  // of strata where some arm asked for a compiler: all arms side by side
  std::vector<CompileCost> compile_costs;
  std::vector<ReadShare> read_shares;
  std::vector<CellProfile> profiles;
  std::vector<Contrast> contrasts;
  std::vector<Contrast> combined;
  std::vector<NotComparable> not_comparable;
  std::vector<Finding> named;  // warnings first
  std::vector<Decision> decisions;
  std::vector<PhaseSplit> splits;
  std::string size_unit;  // of model sizes: "weight bytes", "parameters"; empty: not known
  std::vector<SizeAnalysis> sizes;
};

Json findings_to_json(const Findings& findings);
// FOLDER/analysis/findings.json.
Status write_findings(const Findings& findings, const std::filesystem::path& folder);

}  // namespace assay
