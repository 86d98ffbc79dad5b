// An interval on a scale that has no end: how far something reaches, where in some resamples it
// never ends or never begins.
#pragma once

#include <optional>

namespace assay {

struct Reach {
  std::optional<double> low;   // absent: no lower end
  std::optional<double> high;  // absent: no upper end
};

}  // namespace assay
