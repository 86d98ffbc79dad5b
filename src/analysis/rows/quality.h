// Reads the quality of arms' weights from their cells' evidence.
#pragma once

#include <string>
#include <vector>

#include "analysis/findings/quality.h"
#include "analysis/rows/samples.h"

namespace assay {

// The arm's key `quantization` as its cell's evidence has it: the file of its own weights. Empty:
// they are the model's.
std::string own_weights(const Group& group);

// One an arm and model, in the order of the strata. An arm that computes with weights and key
// `dtype` which another arm was measured with has that arm's figures.
std::vector<ArmQuality> arm_qualities(const Samples& samples);

}  // namespace assay
