// Tails of arms side by side, and the named findings that are read off them.
#pragma once

#include <vector>

#include "analysis/samples.h"
#include "base/thread_pool.h"
#include "stats/quantile_ratio.h"

namespace assay {

// For each stratum on which some arm asked for a compiler, all its arms that have warm rows.
std::vector<Tail> describe_tails(const Samples& samples, stats::QuantileBootstrap& quantiles,
                                 ThreadPool* pool);

// A tail this many times the median is worth a finding; the same factor as for one slow sample.
inline constexpr double kTailFactor = kSlowFactor;
// Without the rows that carry a compilation a tail has to lose this share of its excess over the
// median, or something else makes most of it.
inline constexpr double kTailShare = 0.5;

// Whether the tail is long, and recompilation is what makes it.
bool is_recompile_tail(const Tail& tail);

// "tail_attribution": a compiled arm with samples beyond Tukey's upper fence, and which share of
// them carries a compilation, if any does; the rows that do. "recompile_tail": with its slow
// samples, how many of them carry a compilation, what the tail would be without, the worst with the
// guard that failed. "tail_collapse": another arm of the stratum, eager or compiled, whose tail is
// at most kTailShare of that, and what it costs at p50. "no_recompile_tail": a compiled arm that
// answered prompts of several lengths without a slow recompile, where no other arm has such a tail.
void find_recompile_tails(const Samples& samples, const std::vector<Tail>& tails,
                          const AnalysisOptions& options, stats::QuantileBootstrap& quantiles,
                          std::vector<Finding>& findings);

}  // namespace assay
