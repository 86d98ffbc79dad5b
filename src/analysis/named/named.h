// Named findings: each function looks for one kind of defect and names the rows behind it.
#pragma once

#include <vector>

#include "analysis/contrast/contrast.h"
#include "analysis/findings/contrast.h"
#include "analysis/findings/latency.h"
#include "analysis/findings/load.h"
#include "analysis/findings/named.h"
#include "analysis/findings/options.h"
#include "analysis/findings/strata.h"
#include "analysis/findings/tails.h"
#include "analysis/rows/samples.h"
#include "stats/estimates/quantile_ratio.h"

namespace assay {

// A phase and arm that lost rows ("crash"), and strata where some rows survived ("survivorship"):
// their latency describes the survivors alone.
void find_lost_rows(const Samples& samples, std::vector<Finding>& findings);

// "false_ok": rows that the bundle records as ok and that can't have been (artifact/row_rule.h);
// they count as lost.
void find_false_oks(const Bundle& bundle, const Samples& samples, std::vector<Finding>& findings);

// "survivorship" of a phase and arm: its combined figures lack strata on which rows were lost or
// the output differed.
void find_lost_strata(const Samples& samples, const std::vector<Contrast>& combined,
                      std::vector<Finding>& findings);

// "parity_failure", "parity_unchecked": output that differs from the baseline's, or that nobody
// compared.
void find_parity(const Samples& samples, std::vector<Finding>& findings);

// "output_varies": one prompt that an arm answered in different ways; the rows whose output isn't
// the most frequent one. Parity is asked once, and says nothing about the others.
void find_varying_outputs(const Samples& samples, std::vector<Finding>& findings);

// "too_few_samples": some warm ok rows, but fewer than a contrast needs.
void find_too_few(const Samples& samples, const AnalysisOptions& options,
                  std::vector<Finding>& findings);

// "throttled": rows that the monitor marked, and what held the clock down.
void find_throttled(const Samples& samples, std::vector<Finding>& findings);

// "queue_grows": runs under load in which more requests came than the server ended, so that figures
// depend on the run's length. "requests_failed": requests of a run that aren't among its latencies.
void find_load_troubles(const Samples& samples, const LoadSummary& load,
                        std::vector<Finding>& findings);

// "server_cost": requests under load to assay's own server beside the same engine in process, where
// one of the two is the baseline: the ratio of their times, with its interval.
void find_server_cost(const Samples& samples, const std::vector<Contrast>& contrasts,
                      std::vector<Finding>& findings);

// "gpu_shared": another program on the arm's GPU, with its rows and its share of the GPU's time; a
// warning if it computed there, a note if it only held memory.
void find_gpu_neighbours(const Samples& samples, std::vector<Finding>& findings);

// "cold_start_skew": first samples of at least cold_factor times the median of the rest, or cold
// rows that would move the mean by more than the margin; each only where slow calls as frequent as
// in the rest of the phase don't explain it at 5 % after Holm. A warning where such a first sample
// isn't marked cold and so counts in the mean, a note where it was left out.
void find_cold_starts(const Samples& samples, const AnalysisOptions& options,
                      std::vector<Finding>& findings);

// "drift", "level_change" of a phase: the levels of its rounds of worker processes, over all cells,
// go one way, or are others from some round on, by t at half of 5 %.
void find_changes_between_rounds(const Samples& samples, const AnalysisOptions& options,
                                 std::vector<Finding>& findings);

// "one_sided_tail": an arm with slow calls in a phase beside a baseline (or a baseline beside an
// arm) with none, and the strata on which the contrast allows for those that its rows don't hold.
void find_one_sided_tails(const Samples& samples, const std::vector<Contrast>& contrasts,
                          const AnalysisOptions& options, std::vector<Finding>& findings);

// Findings on the machine's changes in the course of a group's rows, if order matters at 5 % (half
// of it where rounds of processes are judged too) after Holm over the groups of a phase and moves
// the median notably. "level_change": from some row on the latency is another (Pettitt), its rows
// those from there on. "drift": it goes one way all the time (Mann-Kendall; Theil-Sen for the
// size). A group whose order shows both has the one that leaves less of its spread unexplained.
void find_changes_in_order(const Samples& samples, const AnalysisOptions& options,
                           std::vector<Finding>& findings);

// "autocorrelation": neighbouring repetitions so alike, within a process, that the rows tell no
// more than half as many independent ones would. "dependent_rounds": rounds of processes of two
// arms so alike that the variance of their contrast's error is twice that of independent ones, or
// more. `latencies` in the groups' order.
void find_dependence(const Samples& samples, const std::vector<Latency>& latencies,
                     const std::vector<Contrast>& contrasts, std::vector<Finding>& findings);

// "mean_median_disagreement": two arms of a stratum that means and medians rank differently, either
// ranking being significant and one of the differences notable; its rows are the fewest, the
// largest of one arm or the smallest of the other, whose removal makes the mean agree.
void find_rank_disagreements(const ContrastInputs& in, stats::QuantileBootstrap& quantiles,
                             std::vector<Finding>& findings);

// "ranking_sensitive": two arms of a stratum whose means rank them otherwise, and significantly so,
// once the first sample, the largest, the five largest, the smallest, the five smallest or 5 % at
// each end are left out of both, one of the differences being notable; its rows are those whose
// leaving out turns the ranking.
void find_sensitive_rankings(const ContrastInputs& in, std::vector<Finding>& findings);

// "bimodal": latencies of two modes, by Hartigan's dip test at 5 % after Holm over the groups of a
// phase; its rows are those of the rarer one. Not where the prompts' lengths are the modes, nor
// where one mode follows on the other and `findings` have that as a drift or a change of level.
void find_modes(const Samples& samples, const std::vector<Latency>& latencies,
                const AnalysisOptions& options, std::vector<Finding>& findings);

// "constant_latency": every warm row of a group took exactly as long.
void find_constants(const Samples& samples, std::vector<Finding>& findings);

// "unpaired_models": models that an arm or the baseline has alone in a phase; their rows.
void find_unpaired_models(const Samples& samples, std::vector<Finding>& findings);

// "simpson": the ratio of all rows' pooled means and the combined ratio of the strata lie on
// different sides of 1, both notably; its rows are of the strata that the two pools weigh
// differently.
void find_reversals(const Samples& samples, const std::vector<Contrast>& combined,
                    const AnalysisOptions& options, std::vector<Finding>& findings);

// "clocks_disagree": an arm whose server tells a phase's time, and whose client saw another one: by
// 5 % and 1 ms or more, in the medians.
void find_clocks(const Samples& samples, std::vector<Finding>& findings);

// "unlike_precision": arms of one stratum that differ in weights' type or quantisation, with the
// quality of their predictions where it is known; "quality_unknown": it could not be measured.
// "confound": an arm that ran under another build of its framework than the baseline and in another
// mode or cache too.
void find_confounds(const Bundle& bundle, const Samples& samples,
                    const std::vector<ArmQuality>& qualities, std::vector<Finding>& findings);

// "incomplete", "rows_alone", "no_rows", "environment" (one a warning of each sitting's
// environment), "order_confounded" (sequential order: drift and arm can't be told apart).
void find_context(const Bundle& bundle, const StudySummary& study, const Samples& samples,
                  std::vector<Finding>& findings);

// "several_sittings": of a bundle whose rows several sittings measured; and of each stratum whose
// arms' timed rows aren't of the same ones, with the rows of the later. A warning where their
// environments differ, else a note.
void find_sittings(const Bundle& bundle, const Samples& samples, std::vector<Finding>& findings);
// The same strata: whether their arms were measured in different sittings, whose environments
// differ.
std::vector<bool> mixed_sittings(const Bundle& bundle, const Samples& samples);

// "recompile_limit": from which row on calls ran eager because an arm's specialisations were used
// up. "fallback": rows of a compiled arm with calls that ran eager, how many calls, and why.
// "label_only", "unproven_compiler": an arm that says it is compiled and has nothing to show for
// it. "stable_compile": compiled before the timed rows and never again. "form_depends_on_order":
// sizes became symbols because the process had run others before.
void find_compilation(const Samples& samples, std::vector<Finding>& findings);

// "tail_attribution": a compiled arm with samples beyond Tukey's upper fence, and which share of
// them carries a compilation, if any does; the rows that do. "recompile_tail": with its slow
// samples, how many of them carry a compilation, the tail without these, the worst sample with the
// guard that failed. "tail_collapse": another arm of the stratum, eager or compiled, whose tail is
// at most kTailShare (describe/tails.h) of that, and its cost at p50. "no_recompile_tail": a
// compiled arm that answered prompts of several lengths without a slow recompile, where no other
// arm has such a tail.
void find_recompile_tails(const ContrastInputs& in, const std::vector<Tail>& tails,
                          stats::QuantileBootstrap& quantiles, std::vector<Finding>& findings);

// "processes_differ": a cell whose worker processes differ at 5 % after Holm over the phase, so
// much that its rows tell no more than half as many independent ones would; and how much narrower
// intervals would be with twice the repetitions or twice the processes. `latencies` in the groups'
// order.
void find_processes_that_differ(const Samples& samples, const std::vector<Latency>& latencies,
                                const AnalysisOptions& options, std::vector<Finding>& findings);

// "one_process": phases with arms that ran in one process each, so that no interval holds the
// differences between processes of one program. A warning where that leaves comparisons open.
void find_single_processes(const Samples& samples, const std::vector<Latency>& latencies,
                           const std::vector<Contrast>& contrasts, const AnalysisOptions& options,
                           std::vector<Finding>& findings);

// Calls body(group, group) for each two arms of each stratum, once.
template <typename Body>
void for_each_pair(const Samples& samples, const Body& body) {
  for (size_t stratum = 0; stratum < samples.strata.size(); ++stratum) {
    const size_t end = samples.first_group[stratum + 1];
    for (size_t a = samples.first_group[stratum]; a < end; ++a) {
      for (size_t b = a + 1; b < end; ++b) body(samples.groups[a], samples.groups[b]);
    }
  }
}

// Rows that count half: from here on their dependence is a finding.
inline constexpr double kNotableLoss = 2;

// A finding about a whole phase, without text.
Finding about_phase(std::string kind, Severity severity, Phase phase);
// A finding about a group, without text.
Finding about(std::string kind, Severity severity, const Samples& samples, const Group& group);

}  // namespace assay
