// Any bytes as a config.json and as a weight index: an accepted config's sizes are usable.
#include <cstdlib>

#include "engine/model/checkpoint.h"
#include "engine/model/summary.h"
#include "engine/model/weight_files.h"

namespace {

using namespace assay;
using namespace assay::engine;

void check_config(const Json& json) {
  const auto config = parse_model_config(json, "fuzz");
  if (!config) {
    if (config.error().message.find('\n') != std::string::npos) std::abort();
    return;
  }
  if (config->heads % config->kv_heads != 0 || config->head_dim < 1) std::abort();
  if (config->layers > 64) return;  // the list below grows with them
  int64_t elements = 0;
  for (const TensorSpec& spec : tensor_specs(*config)) {
    if (spec.shape.elements() < 1) std::abort();
    if (__builtin_add_overflow(elements, spec.shape.elements(), &elements)) std::abort();
  }
  if (decode_weight_bytes(*config, tensor_specs(*config), 1) == 0) std::abort();
  if (!config->learned_positions && config->head_dim < 4096) {
    if (rope_inverse_frequencies(*config).size() * 2 != static_cast<size_t>(config->head_dim)) {
      std::abort();
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto json = parse_json(text, "fuzz")) check_config(*json);
  if (const auto map = parse_weight_map(text, "fuzz")) {
    for (const auto& [name, shard] : *map) {
      if (shard.empty() || shard.find('/') != std::string::npos) std::abort();
    }
  }
  return 0;
}
