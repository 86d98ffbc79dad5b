// Outcomes of the rows that were attempted.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "artifact/row.h"
#include "stats/samples/intervals.h"

namespace assay {

// Rows attempted (warm-ups too: a crash there is a crash) and their outcomes.
struct OutcomeCounts {
  Phase phase = Phase::kPrefill;
  std::optional<size_t> stratum;  // absent: the whole phase
  std::string arm;
  int64_t attempted = 0;
  int64_t failed = 0;  // status other than ok
  // Interval of the rate: Wilson's, with processes that lost their rows together (rows/losses.h).
  std::optional<stats::Interval> failed_interval;
  std::map<std::string, int64_t> by_status;  // other than ok
  std::map<std::string, int64_t> by_error_class;
};

}  // namespace assay
