// What an arm's answer to parity cost, as its cells' parity.json has it.
#pragma once

#include <optional>

#include "base/json.h"

namespace assay {

// Of the requests for one scenario and batch, which every cell of them shares.
struct ParityCost {
  double seconds = 0;
  // Of these in the compiler, by the worker's own count; absent: it doesn't say.
  std::optional<double> compile_seconds = {};
  // The process ended before anything was timed (`parity: before`); else it is a measured one.
  bool own_process = false;
  friend bool operator==(const ParityCost&, const ParityCost&) = default;
};

inline constexpr const char* kParityCost = "cost";  // the member of parity.json

Json parity_cost_to_json(const ParityCost& cost);
// Of a whole parity.json. Absent: the record has none (older bundles, answers that
// never came), or one of another form.
std::optional<ParityCost> parity_cost_of(const Json& parity);

}  // namespace assay
