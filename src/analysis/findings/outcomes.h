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
  // Attempts of a process: those that served the arm, and of them those that died in a row (crash
  // or timeout). A process that crashes at once costs one row, however many it was to measure.
  int64_t processes = 0;
  int64_t died = 0;
  std::optional<stats::Interval> died_interval = {};  // Wilson's
  std::map<std::string, int64_t> by_status;           // other than ok
  std::map<std::string, int64_t> by_error_class;
};

}  // namespace assay
