// The parts of `calibration`, a file each. Each prints a table of rates beside their bars, and
// returns false where a promised bar is missed by more than chance explains (calibration_lines.h).
#pragma once

#include <cstdint>

namespace assay {

// Contrasts paired by blocks, in the worlds of two runs: equal arms that are said to differ, and
// coverage of intervals.
bool calibrate_blocks(int64_t trials, uint64_t seed);
// Two equal commands that print several samples an invocation, where samples of an invocation are
// alike and invocations are not.
bool calibrate_commands(int64_t trials, uint64_t seed);
// Contrasts of few processes: equal arms that are said to differ, coverage and widths.
bool calibrate_few(int64_t trials, uint64_t seed);
// Named findings without cause, and causes that are named; verdicts where one arm has slow calls or
// rounds depend on one another.
bool calibrate_findings(int64_t trials, uint64_t seed);
// Comparisons of runs whose processes die, and of programs that differ by less than the margin.
bool calibrate_losses(int64_t trials, uint64_t seed);
// Contrasts paired by repetitions or by rounds of processes, beside the unpaired test on the same
// rows: equal arms, coverage, and an arm that takes 5 % longer.
bool calibrate_pairs(int64_t trials, uint64_t seed);
// `assay portability`: verdicts and bands of the robustness index that aren't so, and coverage of
// the index's interval.
bool calibrate_robustness(int64_t trials, uint64_t seed);
// `assay route`: coverage of replayed latency and of regret by another study's rows, triggers that
// fire on requests like the measured rows, arms that are taken and no faster, and optimism's
// interval where there is none.
bool calibrate_routing(int64_t trials, uint64_t seed);
// `assay compare` of equal and of slower programs with both sides in one run, with several runs a
// side, and beside a history, each beside a single pair of bundles.
bool calibrate_runs(int64_t trials, uint64_t seed);
// Studies that stop when they know: wrong decisions, and the repetitions that strata take beside a
// plan of 30 in 5 processes.
bool calibrate_sequential(int64_t trials, uint64_t seed);

}  // namespace assay
