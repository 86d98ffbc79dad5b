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

#include "artifact/row.h"
#include "base/json.h"
#include "base/result.h"
#include "stats/intervals.h"
#include "stats/tests.h"

namespace assay {

inline constexpr int kFindingsSchemaVersion = 1;

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
struct Outcome {
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
  std::optional<stats::Interval> mean_interval;  // BCa bootstrap
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
  int64_t cold_n = 0;                  // ok cold rows
  std::optional<double> cold_median;
  std::optional<double> cold_max;
  std::optional<double> mean_with_cold;
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
  std::string arm;
  std::string baseline;
  int64_t n_arm = 0;
  int64_t n_baseline = 0;
  double ratio = 1;                               // arm / baseline, of means; below 1 is faster
  std::optional<stats::Interval> ratio_interval;  // percentile bootstrap, stratified
  std::optional<double> median_ratio;
  std::optional<double> difference_ms;  // of one stratum, as all the figures in milliseconds
  std::optional<stats::Interval> difference_interval_ms;  // Welch
  std::optional<stats::TestResult> test;                  // Welch t; combined: t of the log ratio
  std::optional<double> p_holm;
  std::optional<double> cohen_d;
  std::optional<double> hedges_g;
  std::optional<stats::RankTest> rank;
  std::optional<stats::TestResult> tost;
  std::optional<double> tost_p_holm;
  std::optional<double> minimum_detectable;  // as a share of the baseline's mean
  Verdict verdict = Verdict::kInconclusive;
  std::map<Verdict, int64_t> stratum_verdicts;  // of a combined contrast
};

struct NotComparable {
  size_t stratum = 0;
  std::string arm;
  std::vector<std::string> reasons;
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
  } kind = Kind::kNone;
  std::string arm;
  std::vector<std::string> tied;
  std::string runner_up;                          // next lowest mean
  std::optional<double> ratio;                    // arm / runner-up, of means
  std::optional<stats::Interval> ratio_interval;  // percentile bootstrap
  std::vector<std::string> left_out;              // arms that aren't comparable here
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

struct Findings {
  AnalysisOptions options;
  std::vector<std::pair<std::string, std::string>> identity;  // flattened, in the bundle's order
  StudySummary study;
  std::vector<Stratum> strata;  // by phase, model, prompt length
  std::vector<Outcome> outcomes;
  std::vector<Latency> latencies;
  std::vector<Contrast> contrasts;
  std::vector<Contrast> combined;
  std::vector<NotComparable> not_comparable;
  std::vector<Finding> named;  // warnings first
  std::vector<Decision> decisions;
};

Json findings_to_json(const Findings& findings);
// FOLDER/analysis/findings.json.
Status write_findings(const Findings& findings, const std::filesystem::path& folder);

}  // namespace assay
