// Normal deviates for simulations.
#pragma once

#include <cmath>
#include <numbers>

#include "base/random.h"

namespace assay::stats {

inline double standard_normal(Random& random) {  // Box and Muller 1958
  const double radius = std::sqrt(-2 * std::log(1 - random.uniform()));
  return radius * std::cos(2 * std::numbers::pi * random.uniform());
}

}  // namespace assay::stats
