// The predictions of arms whose weights aren't the model's own, beside the model's.
#pragma once

#include <string>
#include <vector>

#include "artifact/quality.h"

namespace assay {

struct ArmQuality {
  std::string model;
  std::string arm;
  ModelQuality beside_model;  // as it was measured with these weights, by this arm or another
};

// The arm's on the model, with figures; null: it has none, as the weights are the model's own, or
// nobody measured them.
const ModelQuality* quality_of(const std::vector<ArmQuality>& all, const std::string& model,
                               const std::string& arm);

// "KL 0.031".
std::string quality_text(const ModelQuality& quality);

}  // namespace assay
