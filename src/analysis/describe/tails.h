// Tails of arms side by side.
#pragma once

#include <vector>

#include "analysis/contrast/contrast.h"
#include "analysis/findings/tails.h"
#include "base/process/thread_pool.h"

namespace assay {

// For each stratum on which some arm asked for a compiler, all its arms that have warm rows.
std::vector<Tail> describe_tails(const ContrastInputs& in, stats::QuantileBootstrap& quantiles,
                                 ThreadPool* pool);

// A tail this many times the median is worth a finding; the same factor as for one slow sample.
inline constexpr double kTailFactor = kSlowFactor;
// Without the rows that carry a compilation a tail has to lose this share of its excess over the
// median, or something else makes most of it.
inline constexpr double kTailShare = 0.5;

// True if the tail is long, and recompilation is what makes it.
bool is_recompile_tail(const Tail& tail);

}  // namespace assay
