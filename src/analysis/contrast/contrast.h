// Arms against the baseline and against one another: comparability, tests, verdicts, decisions.
#pragma once

#include <span>
#include <vector>

#include "analysis/contrast/resampling.h"
#include "analysis/contrast/shared_processes.h"
#include "analysis/contrast/units.h"
#include "analysis/contrast/unseen_tails.h"
#include "analysis/findings/findings.h"
#include "stats/estimates/quantile_ratio.h"
#include "stats/estimates/ratio.h"

namespace assay {

// The reason why this group can't be contrasted with any other; empty: it can.
std::vector<std::string> reasons_against(const Group& group, const AnalysisOptions& options);
// The same of the rows that it kept: losses are no reason.
std::vector<std::string> reasons_against_survivors(const Group& group,
                                                   const AnalysisOptions& options);

// True if the warm rows of both answered the same prompts.
bool same_prompts(const Group& a, const Group& b);

// The verdict of the adjusted tests and the bootstrap's interval (verdict.h).
Verdict judge(const Contrast& contrast, const AnalysisOptions& options);

// Inputs of contrasts; all of one bundle. Nothing is owned.
struct ContrastInputs {
  const Samples& samples;
  const Units& units;
  const Resampled& resampled;
  const AnalysisOptions& options;
};

// Fills contrasts, combined and not_comparable.
void contrast_with_baseline(const ContrastInputs& in, Findings& findings, ThreadPool* pool);

// Number of the phase's strata that have the arm and the baseline and no contrast, because rows
// were lost or the output differs: the other strata are then the survivors.
int64_t lost_strata(const Samples& samples, Phase phase, size_t arm);

// The contrasts of one arm with the baseline in one phase as one figure, the geometric mean of
// their ratios. `parts` isn't empty, and `resampled` has their pairs.
Contrast combine(const ContrastInputs& in, const PairResamples& resampled,
                 const std::vector<const Contrast*>& parts);

// The stratum's arm with the lowest mean against each other comparable arm that ran as it is
// labelled, Holm-adjusted over all such pairs of the phase; and the arms that p50 or the tail would
// choose instead. `contrasts`: those with the baseline, whose widenings are taken over.
// `void_because`: of each stratum why no comparison of its arms decides anything (empty: it does);
// of such a one with several arms no arm is named.
std::vector<Decision> decide(const ContrastInputs& in, const std::vector<Contrast>& contrasts,
                             const std::vector<std::string>& void_because,
                             stats::QuantileBootstrap& quantiles, ThreadPool* pool);
// Those of them alone that are void.
std::vector<Decision> void_decisions(const ContrastInputs& in,
                                     const std::vector<std::string>& void_because);

// Errors of a pair as its family tells them: the pair's own of contrast_widenings(),
// spreads_of_pairs() and unseen_tails().
struct PairErrors {
  stats::Widening widening{};
  SharedSpread spread{};
  UnseenTail unseen{};
};
std::vector<PairErrors> errors_of_pairs(const Samples& samples, const Units& units,
                                        std::span<const GroupPair> pairs);

// Figures of one pair on one stratum, not yet adjusted or judged. `resampled` has the pair.
Contrast contrast_pair(const ContrastInputs& in, const PairResamples& resampled,
                       const GroupPair& pair, const PairErrors& errors);

// Moments of both arms' units, without widening. Absent for fewer than two.
std::optional<stats::StratumMoments> pair_moments(const PairUnits& units, bool paired);

// Moves the interval's end on the slow arm's side to where its mean may be.
void allow_for_unseen(const UnseenTail& unseen, Contrast& contrast);

// Number of a combined contrast's strata that know nothing of each other: processes serve all of
// them.
int64_t independent_strata(const Contrast& contrast);

// The bootstrap's interval of the contrast's ratio, as wide as `widening` makes it.
std::optional<stats::Interval> widened_ratio(const std::optional<stats::Interval>& interval,
                                             const Contrast& contrast,
                                             const stats::Widening& widening);

// Tests of samples of which each is one value repeated, where no error can be estimated and
// Student's t has none: by the chance that rows dealt at random to the two arms would part so, 1 /
// (n choose k) for each stratum; the statistic is infinite. Difference: two-sided, over strata that
// all part the same way. Equivalence: one-sided, for a geometric mean of ratios within the margin.
// Nothing where a sample varies.
void add_constant_tests(std::span<const stats::StratumMoments> strata,
                        const AnalysisOptions& options, Contrast& contrast);

// Holm within this family, separately for the difference and for the equivalence; then judges, and
// leaves contrasts of few processes (process_range.h) without intervals. `lost`: as holm_of() has
// it.
void adjust_and_judge(std::vector<Contrast*>& family, size_t lost, const AnalysisOptions& options);

}  // namespace assay
