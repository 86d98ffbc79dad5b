// The native engine's capabilities and toolchain, in the words of messages and evidence.
#pragma once

#include <cstdint>
#include <vector>

#include "base/records/json.h"
#include "engine/model/config.h"

namespace assay {

Json native_capabilities();  // modes, caches, dtypes, architectures
Json native_toolchain();     // the compiler of this program: name, version, flags' kind
// Beginning and end of text: random prompts leave them out.
std::vector<int64_t> native_special_ids(const engine::ModelConfig& config);

}  // namespace assay
