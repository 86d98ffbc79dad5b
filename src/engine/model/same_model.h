// One model in two checkpoints, whose weights have other bits.
#pragma once

#include <string_view>

#include "base/result.h"
#include "engine/model/config.h"

namespace assay::engine {

// bad_input that names the first size, or kind, in which a checkpoint isn't of this model; `object`
// is that checkpoint. Types of weights and lengths of context may differ.
Status check_same_model(const ModelConfig& model, const ModelConfig& other,
                        std::string_view object);

}  // namespace assay::engine
