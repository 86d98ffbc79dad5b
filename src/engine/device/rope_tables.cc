// RoPE's tables, in the precision transformers computes them.
#include <cmath>

#include "engine/device/executor.h"

namespace assay::engine {

RopeTables make_rope_tables(const ModelConfig& config, int64_t positions) {
  RopeTables tables;
  if (config.learned_positions) return tables;
  const std::vector<double> frequencies = rope_inverse_frequencies(config);
  for (int64_t position = 0; position < positions; ++position) {
    for (const double frequency : frequencies) {
      // The angle is rounded to fp32 before its cosine is taken: at far positions that rounding
      // decides.
      const float angle = static_cast<float>(position) * static_cast<float>(frequency);
      tables.cos.push_back(static_cast<float>(std::cos(static_cast<double>(angle))));
      tables.sin.push_back(static_cast<float>(std::sin(static_cast<double>(angle))));
    }
  }
  return tables;
}

}  // namespace assay::engine
