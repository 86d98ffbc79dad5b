// The ways in which a published figure follows from others.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stats/audit.h"

namespace assay::stats {

struct AuditWay {
  std::string name;  // the convention, as a report names it
  std::vector<Figure> inputs;
  std::function<std::optional<double>(std::span<const double>)> compute;  // of the inputs, in order
  bool first_two_are_means = false;  // ... of which equality is a case of its own
};

// Levels of evidence, the most basic first (means, deviations and n; then other claims), and within
// one the conventions, the usual one first.
std::vector<std::vector<AuditWay>> audit_ways(Figure figure);

}  // namespace assay::stats
