// Arm by model size: analysis of variance, and the size at which an arm stops or starts to pay.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "analysis/contrast/contrast.h"
#include "analysis/findings/model_size.h"
#include "analysis/rows/samples.h"

namespace assay {

// Sizes as the run recorded them (completion's model_weight_bytes); where it didn't for every
// model, the number of parameters that each name ends in or holds ("llama3.2-1b", "gpt2-25m");
// empty where some model tells neither.
struct ModelSizes {
  std::string unit;  // "weight bytes", "parameters"; empty: not known
  std::map<std::string, double> of;
};
ModelSizes model_sizes(const Bundle& bundle, const std::vector<Stratum>& strata);

// Conditions (phase, scenario, new tokens, batch) with at least two models and two arms. Only cells
// that can be contrasted take part; where processes are the unit of all of them, the variance
// analysis is of the means of processes. The crossover is found on ln(size) by linear interpolation
// of ln(ratio) between neighbouring sizes; its interval from resamples, in which there may be none.
std::vector<SizeAnalysis> analyze_sizes(const Samples& samples, const Units& units,
                                        const Resampled& resampled,
                                        const std::vector<Contrast>& contrasts,
                                        const ModelSizes& sizes, const AnalysisOptions& options,
                                        ThreadPool* pool);

}  // namespace assay
