// The cost of an arm's answer to parity, as recorded in its cells' parity.json.
#pragma once

#include <optional>

#include "base/records/json.h"

namespace assay {

// Cost of the requests for one scenario and batch; all cells of that scenario and batch share it.
struct ParityCost {
  double seconds = 0;
  // The part of `seconds` in the compiler, by the worker's own count; absent: it doesn't say.
  std::optional<double> compile_seconds = {};
  // The process ended before anything was timed (`parity: before`); else it is a measured one.
  bool own_process = false;
  friend bool operator==(const ParityCost&, const ParityCost&) = default;
};

inline constexpr const char* kParityCost = "cost";  // the member of parity.json

Json parity_cost_to_json(const ParityCost& cost);
// Reads the cost from a whole parity.json. Absent: the record has none (older bundles, requests
// without an answer), or one of another form.
std::optional<ParityCost> parity_cost_of(const Json& parity);

}  // namespace assay
