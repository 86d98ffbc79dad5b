// Contrasts of strata that were looked at while they ran (`stopping: {decide: true}`): their blocks
// ended when it suited, which tests of a fixed number of rounds don't hold for.
#pragma once

#include "analysis/contrast/estimate.h"
#include "analysis/findings/findings.h"

namespace assay {

// True if, by the stratum's evidence, its blocks were to end as soon as its arms were told apart.
bool was_looked_at(const Samples& samples, size_t stratum);

// ln of the ratio of each round of processes, of a stratum that was looked at.
std::vector<double> log_ratios_of(const Estimate& of_rounds);

// ratio: the geometric mean over rounds of processes of arm / baseline; ratio_interval: of it, by
// stats::confirmed_interval(), with alpha shared by all pairs of the study's `arms`, so that the
// intervals of a stratum hold together and whichever arm leads. The run itself judged by the same
// means of rounds (harness/decisions.h). No interval: too few rounds, or arms that aren't paired by
// them.
void contrast_at_any_look(const Estimate& of_rounds, size_t arms, Contrast& contrast);

// That margin of equivalence by which the run stopped, unless the options ask for one.
double margin_at_any_look(const Samples& samples, size_t stratum, const AnalysisOptions& options);

// The verdict by that interval alone.
Verdict verdict_at_any_look(const Contrast& contrast, double margin);

}  // namespace assay
