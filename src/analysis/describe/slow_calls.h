// Why p99 is high: slow calls of each arm, and what the rows recorded beside them.
#pragma once

#include <string_view>
#include <vector>

#include "analysis/findings/slow_calls.h"
#include "analysis/rows/samples.h"

namespace assay {

// A call is slow beyond Tukey's upper fence of its group (third quartile + 1.5 interquartile
// ranges), and above this many times the median: calls of a GPU may all lie within 0.1 %.
inline constexpr double kLeastSlowFactor = 1.1;
// Groups of fewer warm rows have no quartiles worth a fence.
inline constexpr int64_t kLeastForSlowCalls = 10;
// The next call of another arm, or the last one before, is beside a call if no more time than this
// lies between them, in seconds.
inline constexpr double kBesideSeconds = 1;
// This many slow calls of one process, and at most a quarter as many of all others, are a matter of
// that process.
inline constexpr int64_t kLeastOfOneProcess = 3;

// A circumstance counts as a cause if slow calls have it more often than others by Fisher's exact
// test (one-sided): with p at most the first for those that lengthen a call by themselves (the
// first of kSlowCauses), else the second.
inline constexpr double kMostChanceOfThose = 0.05;
inline constexpr double kMostChance = 0.01;
inline constexpr size_t kCausesThatLengthen = 4;

// Circumstances, the surest first: recompile, ran_eager, throttled, gpu_shared, others_slow (it is
// beside a slow call of another arm), slow_processor (the fixed work behind it took long, as no
// other call's), first_of_process, one_process.
inline constexpr std::string_view kSlowCauses[] = {
    "recompile",   "ran_eager",      "throttled",        "gpu_shared",
    "others_slow", "slow_processor", "first_of_process", "one_process"};

// One for each group that has a slow call, in the groups' order. `samples` are the bundle's.
std::vector<ArmSlowCalls> describe_slow_calls(const Bundle& bundle, const Samples& samples);

}  // namespace assay
