// What a worker proved about compilation: cells/CELL/evidence.json as the analysis reads it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"

namespace assay {

enum class CompilerReal { kNotApplicable, kYes, kFallback, kLabelOnly, kUnproven };

// A specialisation that a guard's failure caused.
struct Recompile {
  std::string guard;  // q_len, kv_len, ...
  std::string expected;
  std::string found;
  std::optional<double> seconds;
};

struct CompileEvidence {
  CompilerReal real = CompilerReal::kUnproven;
  std::vector<std::string> reasons;  // of that verdict
  std::string fallback;              // what was fallen back to, a mode; empty: nothing
  std::string fallback_error;        // whole; empty: none
  std::map<std::string, int64_t> counters;
  std::vector<Recompile> recompiles;
  int64_t counter(const std::string& name) const;  // 0 where there is none
  // It fell back to less than its mode promises, but not to eager.
  bool ran_as_other_mode() const { return !fallback.empty() && fallback != "eager"; }
};

// Evidence comes from third parties' workers too: what is missing or of another type is left out,
// and a verdict that isn't known is kUnproven.
CompileEvidence read_evidence(const Json& evidence);

}  // namespace assay
