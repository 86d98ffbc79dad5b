// A defect or a notable fact, by name.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "artifact/row.h"

namespace assay {

enum class Severity { kWarning, kNote };

// A named finding and the rows that cause it.
struct Finding {
  std::string kind;  // cold_start_skew, drift, ...: docs/reading-results.md lists them
  Severity severity = Severity::kNote;
  std::optional<Phase> phase;
  std::optional<size_t> stratum;
  std::string arm;  // empty: not about one arm
  std::string text;
  double size = 0;  // how bad, comparable within a kind: reports show the worst first
  std::map<std::string, std::vector<int64_t>> rows;  // repetitions by cell_id
};

}  // namespace assay
