// The one estimate of how two arms' times compare. It is made here, of the units of both; contrasts
// are tested by it, and judgements combine estimates and infer nothing anew from rows.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/contrast/contrast.h"
#include "analysis/contrast/verdict.h"

namespace assay {

// Shares of one sample's units in an estimate: their mean is 0, and the error of their mean is the
// sample's, not widened.
struct UnitShares {
  std::vector<int64_t> keys;  // UnitSeries::keys
  std::vector<double> values;
};
// Shares of the pairs where the moments have a covariance, else of the arm's and of the baseline's
// units, by these keys.
std::vector<UnitShares> shares_of(const PairUnits& units, std::vector<int64_t> keys,
                                  std::vector<int64_t> baseline_keys,
                                  const stats::StratumMoments& moments);
// Error of the mean over strata, of which each has such shares: units of one key count together. A
// stratum that lacks some of the keys adds more in each of its own, so that by itself it has its
// own error. Absent for strata of which some are paired.
std::optional<stats::StandardError> error_of_shares(
    std::span<const std::vector<UnitShares>> strata);

// ln(arm / other) of two arms' mean times, on a stratum or as a geometric mean over several.
struct Estimate {
  double log_ratio = 0;
  std::optional<stats::StandardError> error = {};  // absent: nothing shows it
  ContrastUnit unit = ContrastUnit::kRows;
  bool paired = false;
  bool one_process = false;  // as Contrast's
  // Least and largest ratio of the processes, where these are fewer than kLeastProcessesOfInterval.
  std::optional<stats::Interval> range = {};
  bool too_few = false;  // the range stands in the interval's place
  bool unsure = false;   // SharedSpread's: no test
  // Factors on the ratio at its interval's ends, by what its rows happen not to hold
  // (unseen_tails.h).
  stats::Interval beyond = {1, 1};
  std::string why_absent = {};    // empty: there is a ratio
  stats::Widening widening = {};  // of the error, by dependent units
  // Where processes are the unit: of the pairs, else of the arm's and of the other's, which know
  // nothing of each other.
  std::vector<UnitShares> shares = {};
};

// `units`: of the pair. A stratum that was looked at while it ran (any_look.h) has the mean of its
// rounds' logarithms, no error, and a share for each round.
Estimate estimate_of(const Samples& samples, const Units& units, const GroupPair& pair,
                     const PairUnits& of_pair, const PairErrors& errors);
// The same of pairs that are one family.
std::vector<Estimate> estimates_of(const Samples& samples, const Units& units,
                                   std::span<const GroupPair> pairs);
// Estimates of the single rounds of paired processes, by their keys, with repetitions as the unit.
// Empty: the stratum has no such rounds.
std::vector<std::pair<int64_t, Estimate>> estimates_of_rounds(const Samples& samples,
                                                              const Units& units,
                                                              const GroupPair& pair);

// ln(other / arm).
Estimate inverted(Estimate estimate);

// Geometric mean of the ratios of one arm and one other over strata. Where processes are the unit
// of all, those of one key served them at the same time and count together; other strata know
// nothing of one another. Without a ratio: one of them has none, or there is none.
Estimate combine(std::span<const Estimate> parts);

// The ratio with its t interval on logarithms, or with the range that stands for it, either moved
// by `beyond`.
SpreadRatio shown(const Estimate& of);

// A ratio, its tests and their verdict.
struct JudgedRatio {
  std::optional<Estimate> ratio = {};
  std::optional<SpreadRatio> shown = {};
  std::optional<stats::TestResult> test = {};  // of a ratio of 1
  std::optional<double> p_holm = {};
  std::optional<stats::TestResult> tost = {};  // of one beyond the margin
  std::optional<double> tost_p_holm = {};
  Verdict decided = Verdict::kInconclusive;
};

struct JudgeOptions {
  double margin = 0.05;
  double alpha = 0.05;
};

// Adds the tests of those that have an error; `equivalence`: both tests, else the first.
void test_ratios(std::span<JudgedRatio* const> family, const JudgeOptions& options,
                 bool equivalence = true);
// Holm over the family, for each of the tests, and the verdicts.
void judge_ratios(const std::vector<JudgedRatio*>& family, const JudgeOptions& options);

}  // namespace assay
